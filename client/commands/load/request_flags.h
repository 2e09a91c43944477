// RequestFlags, the flags of load-test that say what is sent.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load_test/length_distribution.h"
#include "client/load_test/workload.h"

namespace attendant::client {

class RequestFlags {
 public:
  // Adds the flags, which write into this object. `load_test` must not outlive it.
  void AddTo(CLI::App& load_test);

  const std::string& model() const { return workload_.model; }
  uint64_t seed() const { return workload_.seed; }
  bool stream() const { return stream_; }

  // Reads what the flags say without a server. INVALID_ARGUMENT tells which of them is wrong.
  absl::Status Read();

  // Makes the requests, after Read. INVALID_ARGUMENT: the model cannot take them.
  absl::StatusOr<Workload> MakeWorkload(const ModelInfo& model) const;

  // Return lines of the report's plan.
  std::string DescribeMethod() const;
  std::vector<std::pair<std::string, std::string>> Describe(const Workload& workload) const;

 private:
  std::string method_ = "encode";
  bool stream_ = false;
  std::string length_text_ = "128";
  std::string wire_dtype_;
  WorkloadOptions workload_;
  absl::StatusOr<LengthDistribution> lengths_ = absl::UnknownError("not read");
};

}  // namespace attendant::client
