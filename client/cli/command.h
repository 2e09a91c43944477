// The base of the subcommands of attendant-client, and the options that they share.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace attendant::client {

using Json = nlohmann::ordered_json;

// What scripts can rely on; the help documents it.
enum ExitCode : int {
  kSucceeded = 0,
  kRefused = 1,         // the server answered an error
  kBadUsage = 2,        // flags or files
  kUnreachable = 3,     // no server, or one that does not serve
  kLoadTestFailed = 4,  // the load test ran, with errors or beyond a threshold
};

// What a subcommand runs with.
struct Session {
  std::string address;
  CallOptions call;
  bool json = false;
  std::ostream& out;
  std::ostream& err;

  Client Connect() const { return Client::Connect(address); }
};

class Command {
 public:
  virtual ~Command() = default;

  // Adds the subcommand and its flags, which write into this object.
  virtual CLI::App* AddTo(CLI::App& app) = 0;

  // Runs with the flags that were parsed.
  virtual ExitCode Run(Session& session) = 0;
};

// One line on stderr, and with --json a document {"error": {code, message}} on stdout.
ExitCode ReportBadUsage(Session& session, const absl::Status& status);
ExitCode ReportServerError(Session& session, const absl::Status& status);

void PrintJson(Session& session, const Json& document);

// A flag for a duration such as 250ms, 30s or 2m; a bare number counts seconds. Negative ones are
// refused.
CLI::Option* AddDuration(CLI::App& app, const std::string& flag, absl::Duration& value,
                         const std::string& help);

}  // namespace attendant::client
