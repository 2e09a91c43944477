// flood_generator ATTACK SECONDS COUNT TARGET [--tls] [ADDRESS…]: floods a server, and prints a
// line of JSON: sent_bytes, mib_per_s, connections and seconds. ATTACK is one that attack.h names.
// It keeps COUNT connections from each ADDRESS, or COUNT in all if there is none; one that the
// server cuts is made again at once. TARGET is a port of 127.0.0.1, or unix:PATH. Ends early at
// SIGTERM.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "tests/reliability/flood_generator/generator.h"

namespace attendant::flood {
namespace {

volatile std::sig_atomic_t stopped = 0;

int Run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4 || MakeAttack(arguments[0], 0) == nullptr) {
    std::fputs("flood_generator ATTACK SECONDS COUNT TARGET [--tls] [ADDRESS...]\n", stderr);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to closed sockets
  std::signal(SIGTERM, [](int) { stopped = 1; });
  const auto tls = MakeTlsContext();
  constexpr char kUnix[] = "unix:";
  Target target;
  if (arguments[3].starts_with(kUnix)) {
    target.unix_path = arguments[3].substr(sizeof(kUnix) - 1);
  } else {
    target.port = std::atoi(arguments[3].c_str());
  }
  std::vector<std::string> addresses(arguments.begin() + 4, arguments.end());
  if (!addresses.empty() && addresses.front() == "--tls") {
    target.tls = tls.get();
    addresses.erase(addresses.begin());
  }
  if (addresses.empty()) addresses = {"127.0.0.1"};
  std::vector<std::string> sources;
  for (const std::string& address : addresses) {
    sources.insert(sources.end(), std::strtoul(arguments[2].c_str(), nullptr, 10), address);
  }
  const Sent sent =
      Generator(target, sources, arguments[0])
          .Run(std::chrono::duration<double>(std::atof(arguments[1].c_str())), stopped);
  std::printf(R"({"sent_bytes": %lld, "mib_per_s": %.3f, "connections": %lld, "seconds": %.3f})"
              "\n",
              static_cast<long long>(sent.bytes),
              static_cast<double>(sent.bytes) / (1 << 20) / sent.seconds,
              static_cast<long long>(sent.connections), sent.seconds);
  return 0;
}

}  // namespace
}  // namespace attendant::flood

int main(int argc, char** argv) {
  try {
    return attendant::flood::Run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
