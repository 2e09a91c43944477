#include "client/cli/command.h"

#include <string>

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

void PrintJson(Session& session, const JsonValue& document) {
  session.out << document.ToText() << "\n";
}

}  // namespace attendant::client
