// Command, the base class of the commands of attendant-client, and the options and the output that
// they share.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/flags/flag.h"
#include "client/json/json_value.h"

namespace attendant::client {

// The exit codes of attendant-client. Scripts rely on them, and the help documents them.
enum ExitCode : int {
  kSucceeded = 0,
  kRefused = 1,         // the server returned an error
  kBadUsage = 2,        // wrong flags or files
  kUnreachable = 3,     // no server, or a server that is not serving
  kLoadTestFailed = 4,  // the load test ran, with errors or beyond a threshold
};

// The options and streams that a command runs with.
struct Session {
  std::string address;
  CallOptions call;
  bool json = false;
  std::ostream& out;
  std::ostream& err;

  ClientOptions connection = {};
  std::vector<std::string> command_line = {};  // with the name of the program

  // Load tests use their own connection without retries, to see all errors.
  Client Connect(bool own_connection = false) const {
    ClientOptions options = connection;
    options.own_connection = own_connection;
    options.retry = !own_connection;
    return Client::Connect(address, options);
  }
};

// A command and the values of its flags.
class Command {
 public:
  virtual ~Command() = default;

  // Returns the command and its flags, which write into this object and must not outlive it.
  virtual CommandTable Table() = 0;

  // Runs the command, after its flags have been read, and reports its errors.
  virtual ExitCode Run(Session& session) = 0;
};

// Reports an error: one line on stderr and, with --json, the document {"error": {code, message}} on
// stdout. Returns the exit code that fits it.
ExitCode ReportBadUsage(Session& session, const absl::Status& status);
ExitCode ReportServerError(Session& session, const absl::Status& status);

void PrintJson(Session& session, const JsonValue& document);

}  // namespace attendant::client
