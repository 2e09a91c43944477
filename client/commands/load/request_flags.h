// RequestFlags, the load-test flags for the requests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/flags/flag.h"
#include "client/load_requests/sequences.h"
#include "client/load_requests/workload.h"

namespace attendant::client {

class RequestFlags {
 public:
  // Adds the flags, which write into this object.
  void AddTo(CommandTable& load_test);

  const std::string& model() const { return workload_.model; }
  uint64_t seed() const { return workload_.seed; }
  bool stream() const { return stream_; }

  // Reads the flags and their files, without a server. The error names the wrong one.
  absl::Status Read();

  // Makes the requests, after Read. INVALID_ARGUMENT: the model cannot take them.
  absl::StatusOr<Workload> MakeWorkload(const ModelInfo& model) const;

  // Return lines of the report's plan.
  std::string DescribeMethod() const;
  std::vector<std::pair<std::string, std::string>> Describe(const Workload& workload) const;

 private:
  Flags SequenceFlags();
  absl::Status CheckCombination() const;
  absl::StatusOr<Sequences> ReadSequences() const;

  bool stream_ = false;
  std::string length_text_ = "128";
  std::string lengths_file_;
  std::string ids_file_;
  WorkloadOptions workload_;
  absl::StatusOr<Sequences> sequences_ = absl::UnknownError("not read");
};

}  // namespace attendant::client
