#include "tests/integration/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace {

constexpr int kPatienceMilliseconds = 60'000;

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::string UniquePath() {
  static int count = 0;
  return absl::StrCat(testing::TempDir(), "attendant_ports_", getpid(), "_", ++count);
}

std::vector<std::string> WithFreePorts(std::vector<std::string> flags, const std::string& file) {
  flags.insert(flags.begin(), {"--address=127.0.0.1", "--port=0", "--http-port=0",
                               absl::StrCat("--port-file=", file)});
  return flags;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& flags,
                             const std::vector<std::string>& environment,
                             const std::vector<std::string>& launcher) {
  std::vector<std::string> arguments = launcher;
  arguments.push_back(ATTENDANT_SERVER_BINARY);
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::vector<std::string> variables = environment;
  for (const char* kept : {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(kept)) variables.push_back(absl::StrCat(kept, "=", value));
  }
#ifdef __SANITIZE_ADDRESS__
  // Else 256 MiB of freed memory stay in the process, most of what some tests allow it, and more
  // until something else is freed.
  const char* options = std::getenv("ASAN_OPTIONS");
  std::erase_if(variables, [](const std::string& each) { return each.starts_with("ASAN_"); });
  variables.push_back(
      absl::StrCat("ASAN_OPTIONS=quarantine_size_mb=16:", "allocator_release_to_os_interval_ms=0:",
                   options ? options : ""));
#endif
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  EXPECT_EQ(posix_spawnp(&pid_, arguments[0].c_str(), &actions, nullptr, Pointers(arguments).data(),
                         Pointers(variables).data()),
            0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  stderr_ = ends[0];
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    AwaitEnd();
  }
  close(stderr_);
}

bool ServerProcess::FillBuffer() {
  pollfd readable = {stderr_, POLLIN, 0};
  if (poll(&readable, 1, kPatienceMilliseconds) == 0) {
    ADD_FAILURE() << "the server says nothing; killed";
    Signal(SIGKILL);
  }
  char bytes[4096];
  const ssize_t got = read(stderr_, bytes, sizeof bytes);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::optional<std::string> ServerProcess::ReadLine() {
  size_t end;
  while ((end = buffer_.find('\n')) == buffer_.npos) {
    if (FillBuffer()) continue;
    if (buffer_.empty()) return std::nullopt;
    end = buffer_.size();
    break;
  }
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

std::string ServerProcess::AwaitLine(const std::string& text) {
  std::string all;
  while (std::optional<std::string> line = ReadLine()) {
    if (line->find(text) != line->npos) return *line;
    absl::StrAppend(&all, *line, "\n");
  }
  ADD_FAILURE() << "no line with \"" << text << "\" in:\n" << all;
  return "";
}

void ServerProcess::Signal(int number) { kill(pid_, number); }

ServerProcess::End ServerProcess::AwaitEnd() {
  End end;
  while (std::optional<std::string> line = ReadLine()) end.lines.push_back(*line);
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

ServerProcess::End ServerProcess::SignalUntilEnd(int number) {
  pollfd readable = {stderr_, POLLIN, 0};
  do {
    Signal(number);
  } while (poll(&readable, 1, /*milliseconds=*/20) == 0);
  return AwaitEnd();
}

ReadyServer::ReadyServer(std::vector<std::string> flags, const std::vector<std::string>& launcher)
    : port_file_(UniquePath()),
      process_(WithFreePorts(std::move(flags), port_file_), {}, launcher) {
  process_.AwaitLine("ready: ");
  std::map<std::string, int> ports;
  std::ifstream file(port_file_);
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    ports[line.substr(0, equals)] = std::atoi(line.substr(equals + 1).c_str());
  }
  port_ = ports["grpc_port"];
  http_port_ = ports["http_port"];
  std::filesystem::remove(port_file_);
}

std::string ReadyServer::address() const { return absl::StrCat("127.0.0.1:", port_); }

std::shared_ptr<grpc::Channel> ReadyServer::NewChannel() const {
  grpc::ChannelArguments own_connection;
  own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  own_connection.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), own_connection);
}

std::unique_ptr<v1::EncoderService::Stub> ReadyServer::NewStub() const {
  return v1::EncoderService::NewStub(NewChannel());
}

std::string ReadyServer::Get(const std::string& path, const std::string& token) const {
  return HttpGet(http_port_, path, token);
}

std::string HttpGet(int port, const std::string& path, const std::string& token) {
  const std::string authorization =
      token.empty() ? "" : absl::StrCat("Authorization: Bearer ", token, "\r\n");
  return Exchange(port,
                  absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n", authorization, "\r\n"));
}

static int64_t ValueOf(const std::string& name, const std::string& metrics) {
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    double value;
    if (parts.size() == 2 && parts[0] == name && absl::SimpleAtod(parts[1], &value)) {
      return static_cast<int64_t>(value);
    }
  }
  ADD_FAILURE() << "no metric " << name;
  return -1;
}

int64_t Metric(const ReadyServer& server, const std::string& name) {
  return ValueOf(name, server.Get("/metrics"));
}

void AwaitMetric(const ReadyServer& server, const std::string& name, int64_t value) {
  const absl::Time patience = absl::Now() + absl::Minutes(1);
  while (!testing::Test::HasFailure() && Metric(server, name) != value) {
    ASSERT_LT(absl::Now(), patience) << name << " does not become " << value;
    std::this_thread::yield();
  }
}

int64_t BytesHeld(const ReadyServer& server) {
  // Of one moment: what passes from one to the next would count twice in several answers.
  const std::string metrics = server.Get("/metrics");
  return ValueOf("attendant_receiving_bytes", metrics) +
         ValueOf("attendant_request_bytes", metrics) + ValueOf("attendant_answer_bytes", metrics);
}

int64_t ProcessStatus(const ReadyServer& server, const std::string& name) {
  std::ifstream status(absl::StrCat("/proc/", server.process().pid(), "/status"));
  for (std::string word; status >> word;) {
    if (word != absl::StrCat(name, ":")) continue;
    int64_t value = 0;
    status >> value;
    return value;
  }
  ADD_FAILURE() << "no " << name;
  return -1;
}

TakenPort::TakenPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd_, 1), 0);
  EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
}

TakenPort::~TakenPort() { close(fd_); }

}  // namespace attendant::server
