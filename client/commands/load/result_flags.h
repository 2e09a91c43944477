// ResultFlags, the load-test flags for the results.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/load_test/objective.h"
#include "client/load_test/request_log.h"

namespace attendant::client {

class ResultFlags {
 public:
  // Adds the flags, which write into this object.
  void AddTo(CommandTable& load_test);

  // Parses the objectives and opens the files. The error names the flag that is wrong.
  absl::Status Read();

  const std::vector<Objective>& required() const { return required_; }
  bool progress() const { return progress_; }
  bool verify() const { return verify_; }
  // Returns the file of --requests-out; null without it.
  RequestLog* request_log() const { return log_.get(); }
  // Writes a report made by ReportJson to the files of the flags, and closes the request log.
  // Returns the first error.
  absl::Status Write(const JsonValue& document) const;

  // Returns the value of the flag; empty without it.
  const std::string& metrics_url() const { return metrics_url_; }
  // Returns the content of --metrics-token-file.
  const std::string& metrics_token() const { return metrics_token_; }

 private:
  std::vector<std::string> require_;
  bool progress_ = false;
  bool verify_ = false;
  std::string requests_out_;
  std::string html_;
  std::string json_out_;
  std::string metrics_url_;
  std::string metrics_token_file_;

  // Set by Read.
  std::vector<Objective> required_;
  std::unique_ptr<RequestLog> log_;
  std::string metrics_token_;
};

}  // namespace attendant::client
