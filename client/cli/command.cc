#include "client/cli/command.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

void Report(Session& session, const absl::Status& status, const std::string& subject) {
  const std::string code = absl::StatusCodeToString(status.code());
  const std::string message(status.message());
  session.err << "attendant-client: " << subject << message << "\n";
  if (session.json) PrintJson(session, {{"error", {{"code", code}, {"message", message}}}});
}

}  // namespace

ExitCode ReportBadUsage(Session& session, const absl::Status& status) {
  Report(session, status, "");
  return kBadUsage;
}

ExitCode ReportServerError(Session& session, const absl::Status& status) {
  Report(session, status,
         absl::StrCat(session.address, ": ", absl::StatusCodeToString(status.code()), ": "));
  return status.code() == absl::StatusCode::kUnavailable ? kUnreachable : kRefused;
}

std::string ToText(const Json& document) {
  // JSON has to be UTF-8, but text from a server need not be.
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

void PrintJson(Session& session, const Json& document) { session.out << ToText(document) << "\n"; }

CLI::Option* AddDuration(CLI::App& app, const std::string& flag, absl::Duration& value,
                         const std::string& help) {
  const auto parse = [&value, flag](const CLI::results_t& results) {
    double seconds = 0;
    absl::Duration parsed;
    if (absl::SimpleAtod(results[0], &seconds)) {
      parsed = absl::Seconds(seconds);
    } else if (!absl::ParseDuration(results[0], &parsed)) {
      throw CLI::ValidationError(flag, "'" + results[0] + "' is no duration such as 250ms or 30s");
    }
    if (parsed < absl::ZeroDuration()) throw CLI::ValidationError(flag, "is negative");
    value = parsed;
    return true;
  };
  return app.add_option(flag, parse, help)
      ->type_name("DURATION")
      ->default_str(absl::FormatDuration(value));
}

}  // namespace attendant::client
