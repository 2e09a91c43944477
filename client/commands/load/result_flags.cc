#include "client/commands/load/result_flags.h"

#include <utility>

#include "client/cli/connection_options.h"
#include "client/cli/read_tensors.h"
#include "client/cli/shared_flags.h"
#include "client/files/file_bytes.h"
#include "client/load_report/report_page.h"

namespace attendant::client {

void ResultFlags::AddTo(CommandTable& load_test) {
  load_test.Add(
      "Results",
      {{"--require", "OBJECTIVE",
        "Exit with code 4 unless every step meets this objective: p99<50ms (or any other "
        "percentile), mean<20ms, max<1s, throughput>100 (responses per second), goodput>100, "
        "errors<0.1%",
        TextsKind(require_), "", "--find-rate"},
       {"--verify", "",
        "First send each distinct request by itself, and fail every later response that does not "
        "have the same bits",
        SwitchKind(verify_), "", "--stream"},
       {"--metrics-url", "URL",
        "Add the server's metrics before and after the test to the report, for example from "
        "http://localhost:8002/metrics",
        TextKind(metrics_url_)},
       {"--metrics-token-file", "FILE",
        "File that contains only the bearer token for --metrics-url", TextKind(metrics_token_file_),
        "--metrics-url"}});
  load_test.Add(
      "Output",
      {{"--progress", "", "Print a line per second on stderr, even if it is not a terminal",
        SwitchKind(progress_)},
       HtmlFlag(html_),
       {"--json-out", "FILE", "Also write the report as JSON to FILE", TextKind(json_out_)},
       {"--requests-out", "FILE",
        "Also write a line of JSON per request: when it was due, sent and answered, its status, "
        "tokens and server times",
        TextKind(requests_out_)}});
}

absl::Status ResultFlags::Write(const JsonValue& document) const {
  absl::Status status;
  if (!html_.empty()) status.Update(WriteFile(html_, LoadPage({{"", document}}), ""));
  if (!json_out_.empty()) status.Update(WriteFile(json_out_, document.ToText(), "\n"));
  if (log_ != nullptr) status.Update(log_->Close());
  return status;
}

absl::Status ResultFlags::Read() {
  absl::StatusOr<std::vector<Objective>> required = ParseObjectives(require_);
  if (!required.ok()) return Named("--require", required.status());
  required_ = *std::move(required);
  if (!requests_out_.empty()) {
    absl::StatusOr<std::unique_ptr<RequestLog>> log = RequestLog::Open(requests_out_);
    if (!log.ok()) return Named("--requests-out", log.status());
    log_ = *std::move(log);
  }
  if (!metrics_token_file_.empty()) {
    absl::StatusOr<std::string> token = ReadToken(metrics_token_file_);
    if (!token.ok()) return Named("--metrics-token-file", token.status());
    metrics_token_ = *std::move(token);
  }
  // Whether they can be written is found out before the test, not after it.
  for (const auto& [flag, path] : {std::pair("--html", &html_), {"--json-out", &json_out_}}) {
    const absl::Status writable = path->empty() ? absl::OkStatus() : CheckWritable(*path);
    if (!writable.ok()) return Named(flag, writable);
  }
  return absl::OkStatus();
}

}  // namespace attendant::client
