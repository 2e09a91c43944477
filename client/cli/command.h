// Command, the base class of the subcommands of attendant-client, and the options and the output
// that they share.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace attendant::client {

using Json = nlohmann::ordered_json;

// The exit codes of attendant-client. Scripts rely on them, and the help documents them.
enum ExitCode : int {
  kSucceeded = 0,
  kRefused = 1,         // the server answered with an error
  kBadUsage = 2,        // wrong flags or files
  kUnreachable = 3,     // no server, or one that is not serving
  kLoadTestFailed = 4,  // the load test ran, with errors or beyond a threshold
};

// The options and streams that a subcommand runs with.
struct Session {
  std::string address;
  CallOptions call;
  bool json = false;
  std::ostream& out;
  std::ostream& err;

  ClientOptions connection = {};
  std::vector<std::string> command_line = {};  // with the name of the program

  // A connection of its own is for load tests, which would not see the errors of calls that are
  // tried again.
  Client Connect(bool own_connection = false) const {
    ClientOptions options = connection;
    options.own_connection = own_connection;
    options.retry = !own_connection;
    return Client::Connect(address, options);
  }
};

// A subcommand and the values of its flags.
class Command {
 public:
  virtual ~Command() = default;

  // Adds the subcommand and its flags, which write into this object. `app` must not outlive it.
  virtual CLI::App* AddTo(CLI::App& app) = 0;

  // Runs the subcommand, after its flags have been parsed, and reports its errors.
  virtual ExitCode Run(Session& session) = 0;
};

// Reports an error: one line on stderr and, with --json, the document {"error": {code, message}} on
// stdout. Returns the exit code that fits it.
ExitCode ReportBadUsage(Session& session, const absl::Status& status);
ExitCode ReportServerError(Session& session, const absl::Status& status);

// Returns JSON as it is printed, in UTF-8 whatever is in it.
std::string ToText(const Json& document);
void PrintJson(Session& session, const Json& document);

// Adds a flag for a duration such as 250ms, 30s or 2m; a bare number means seconds. Negative
// durations are refused.
CLI::Option* AddDuration(CLI::App& app, const std::string& flag, absl::Duration& value,
                         const std::string& help);

}  // namespace attendant::client
