#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "server/app.h"
#include "server/describe/model_report.h"
#include "server/host/freed_memory.h"
#include "server/host/library_variables.h"
#include "server/host/logging.h"
#include "server/host/signals.h"
#include "server/pull_models.h"
#include "server/settings/read_settings.h"
#include "server/settings/settings.h"

extern char** environ;

namespace attendant::server {
namespace {

constexpr int kBadStart = 2;

std::vector<std::pair<std::string, std::string>> Environment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    variables.push_back(absl::StrSplit(std::string(*entry), absl::MaxSplits('=', 1)));
  }
  return variables;
}

int Refuse(const std::string& why, int exit_code = kBadStart) {
  std::fprintf(stderr, "attendant-server: %s\n", EscapeControls(why).c_str());
  return exit_code;
}

int Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  return Refuse("stdout: cannot be written", 1);
}

// Prints the directory of the model to standard output.
int Pull(const Settings& settings) {
  const absl::StatusOr<Settings> pulled = WithPulledModels(settings, /*may_use_cache=*/false);
  if (!pulled.ok()) return Refuse(std::string(pulled.status().message()), 1);
  return Print(pulled->models.front().pulled_folder + "\n");
}

int Describe(const SettingsRequest& request) {
  const absl::StatusOr<Settings> pulled = WithPulledModels(request.settings);
  if (!pulled.ok()) return Refuse(std::string(pulled.status().message()), 1);
  return DescribeModel(*pulled, request.describe);
}

int Run(const std::vector<std::string>& arguments) {
  const absl::StatusOr<SettingsRequest> request = ReadSettings(arguments, Environment());
  if (!request.ok()) return Refuse(std::string(request.status().message()));
  if (!request->text.empty()) return Print(request->text);
  StartLogging(request->settings.log_format, request->settings.log_level);
  if (request->kind == SettingsRequest::Kind::kPull) return Pull(request->settings);
  if (request->kind == SettingsRequest::Kind::kDescribe) return Describe(*request);
  TakeStopSignals();
  const absl::StatusOr<std::unique_ptr<App>> app = App::Start(request->settings);
  if (!app.ok()) return Refuse(std::string(app.status().message()));
  AwaitStopSignal();
  (*app)->Drain();
  return 0;
}

}  // namespace
}  // namespace attendant::server

int main(int argc, char** argv) {
  // Debian 13's Abseil aborts the process if it finds a cycle in the locking order of mutexes, and
  // its gRPC does not report when a mutex is destroyed: a new one at an old address can close a
  // cycle that does not exist.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  attendant::server::SetLibraryVariables(argv);
  attendant::server::LimitHeaps();
  try {
    return attendant::server::Run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    return attendant::server::Refuse(
        "out of memory: a limit applies that the server does not know, such as ulimit -v; raise "
        "it, or set --memory-limit-bytes below it to see how much memory the server needs");
  } catch (const std::exception& error) {
    return attendant::server::Refuse(error.what());
  }
}
