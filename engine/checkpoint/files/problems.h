// Collects everything that is wrong with a model, so that one message tells all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Text from a file, fit for a message: in quotes, control characters escaped, cut if long.
std::string Quoted(absl::string_view text);

class Problems {
 public:
  // `subject` is the file or folder that the message starts with.
  explicit Problems(std::string subject) : subject_(std::move(subject)) {}

  // The same problem twice is one problem.
  void Add(std::string problem);

  bool empty() const { return problems_.empty(); }

  // OK if there are none; else INVALID_ARGUMENT "<subject>: <problem>; <problem>; …", one line.
  // ListProblems takes it apart again.
  absl::Status ToStatus() const;

 private:
  std::string subject_;
  std::vector<std::string> problems_;
  absl::flat_hash_set<std::string> seen_;
  int64_t left_out_ = 0;  // beyond what a person would read
};

// The problems that a refusal names, one each, with the file or folder. None if OK.
std::vector<std::string> ListProblems(const absl::Status& status);

}  // namespace attendant
