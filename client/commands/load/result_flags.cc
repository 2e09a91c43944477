#include "client/commands/load/result_flags.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/connection_options.h"
#include "client/files/file_bytes.h"
#include "client/load_report/report_page.h"

namespace attendant::client {
namespace {

absl::Status OfResultFlag(const char* flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", status.message()));
}

}  // namespace

void ResultFlags::AddTo(CLI::App& load_test) {
  load_test
      .add_option("--require", require_,
                  "Exit with 4 unless every step keeps this OBJECTIVE: p99<50ms (or any other "
                  "percentile), mean<20ms, max<1s, throughput>100 (answers a second), goodput>100, "
                  "errors<0.1%; repeatable")
      ->type_name("OBJECTIVE")
      ->allow_extra_args(false)
      ->excludes(load_test.get_option("--find-rate"));
  load_test.add_flag("--progress", progress_,
                     "Print a line per second on stderr, even if it is not a terminal");
  load_test.add_flag(
      "--verify", verify_,
      "First send each distinct request alone, and fail every later answer that does "
      "not have the same bits");
  load_test
      .add_option("--requests-out", requests_out_,
                  "Write a line of JSON for each request: when it was due, sent and answered, its "
                  "status, tokens and times in the server")
      ->type_name("FILE");
  load_test.add_option("--html", html_, "Write the report as one self-contained page there")
      ->type_name("FILE");
  load_test
      .add_option("--json-out", json_out_, "Write the report as JSON there, beside what is printed")
      ->type_name("FILE");
  auto* url = load_test
                  .add_option("--metrics-url", metrics_url_,
                              "The server's metrics for the report, before and after the test, "
                              "such as http://localhost:8002/metrics")
                  ->type_name("URL");
  load_test
      .add_option("--metrics-token-file", metrics_token_file_,
                  "File with the bearer token to send to --metrics-url, and nothing else")
      ->type_name("FILE")
      ->needs(url);
}

absl::Status ResultFlags::Write(const Json& document) const {
  absl::Status status;
  if (!html_.empty()) status.Update(WriteFile(html_, LoadPage({{"", document}}), ""));
  if (!json_out_.empty()) status.Update(WriteFile(json_out_, ToText(document), "\n"));
  if (log_ != nullptr) status.Update(log_->Close());
  return status;
}

absl::Status ResultFlags::Read() {
  absl::StatusOr<std::vector<Objective>> required = ParseObjectives(require_);
  if (!required.ok()) return OfResultFlag("--require", required.status());
  required_ = *std::move(required);
  if (!requests_out_.empty()) {
    absl::StatusOr<std::unique_ptr<RequestLog>> log = RequestLog::Open(requests_out_);
    if (!log.ok()) return OfResultFlag("--requests-out", log.status());
    log_ = *std::move(log);
  }
  if (!metrics_token_file_.empty()) {
    absl::StatusOr<std::string> token = ReadToken(metrics_token_file_);
    if (!token.ok()) return OfResultFlag("--metrics-token-file", token.status());
    metrics_token_ = *std::move(token);
  }
  // Whether they can be written is found out before the test, not after it.
  for (const auto& [flag, path] : {std::pair("--html", &html_), {"--json-out", &json_out_}}) {
    const absl::Status writable = path->empty() ? absl::OkStatus() : WriteFile(*path, "", "");
    if (!writable.ok()) return OfResultFlag(flag, writable);
  }
  return absl::OkStatus();
}

}  // namespace attendant::client
