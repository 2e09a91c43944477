// A collection of everything that is wrong with a model, for one message that lists all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Quotes text from a file for a message: control characters are escaped, and long text is cut.
std::string Quoted(absl::string_view text);

class Problems {
 public:
  // `subject` is the file or folder that the message starts with.
  explicit Problems(std::string subject) : subject_(std::move(subject)) {}

  // Adding the same problem twice has no further effect.
  void Add(std::string problem);

  bool empty() const { return problems_.empty(); }

  // Returns OK if there are no problems; else INVALID_ARGUMENT with the one-line message
  // "<subject>: <problem>; <problem>; …", which ListProblems takes apart again.
  absl::Status ToStatus() const;

 private:
  std::string subject_;
  std::vector<std::string> problems_;
  absl::flat_hash_set<std::string> seen_;
  int64_t left_out_ = 0;  // beyond the number that a message lists
};

// Lists the problems that a refusal names, each with its file or folder. The list is empty if
// `status` is OK.
std::vector<std::string> ListProblems(const absl::Status& status);

}  // namespace attendant
