#include "client/load_test/request_log.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant::client {
namespace {

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }
double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

void AppendLine(int step, const RequestRecord& record, std::string& lines) {
  absl::StrAppendFormat(&lines,
                        R"({"step":%d,"index":%d,"measured":%s,"intended_s":%.9f,"sent_s":%.9f,)"
                        R"("answered_s":%.9f,"status":"%s","tokens":%d)",
                        step, record.index, record.measured ? "true" : "false",
                        Seconds(record.intended), Seconds(record.sent), Seconds(record.answered),
                        absl::StatusCodeToString(record.code), record.tokens);
  if (record.code == absl::StatusCode::kOk) {
    absl::StrAppendFormat(&lines, R"(,"queue_ms":%.6f,"copy_ms":%.6f,"compute_ms":%.6f)",
                          Milliseconds(record.execution.queue), Milliseconds(record.execution.copy),
                          Milliseconds(record.execution.compute));
  }
  lines += "}\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<RequestLog>> RequestLog::Open(const std::string& path) {
  std::unique_ptr<RequestLog> log(new RequestLog);
  log->path_ = path;
  log->file_.open(path, std::ios::binary | std::ios::trunc);
  if (!log->file_) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return log;
}

void RequestLog::Add(const RequestRecord& record) {
  absl::MutexLock lock(&mutex_);
  records_.push_back(record);
}

void RequestLog::Flush() {
  std::vector<RequestRecord> records;
  {
    absl::MutexLock lock(&mutex_);
    records.swap(records_);
  }
  std::string lines;
  for (const RequestRecord& record : records) AppendLine(step_, record, lines);
  file_.write(lines.data(), static_cast<std::streamsize>(lines.size()));
}

absl::Status RequestLog::Close() {
  Flush();
  file_.close();
  if (file_.fail()) return absl::DataLossError(absl::StrCat("could not write all of ", path_));
  return absl::OkStatus();
}

}  // namespace attendant::client
