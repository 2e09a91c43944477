// A collection of everything that is wrong with a model, for one message that lists all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Quotes text from a file for a message: control characters are escaped, and long text is cut.
std::string Quoted(absl::string_view text);

// Returns INVALID_ARGUMENT; the message is made of the parts as absl::StrCat does.
template <class... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

class Problems {
 public:
  // `subject` is the file or folder that the message starts with.
  explicit Problems(std::string subject) : subject_(std::move(subject)) {}

  // Adds a problem, made of the parts as absl::StrCat does. Adding the same one twice has no
  // further effect.
  template <class... Parts>
  void Add(const Parts&... parts) {
    AddText(absl::StrCat(parts...));
  }

  // Adds the message of a status that is not OK.
  void AddError(const absl::Status& status) {
    if (!status.ok()) Add(status.message());
  }

  bool empty() const { return problems_.empty(); }

  // Returns OK if there are no problems; else INVALID_ARGUMENT with the one-line message
  // "<subject>: <problem>; <problem>; …", which ListProblems takes apart again.
  absl::Status ToStatus() const;

 private:
  void AddText(std::string problem);

  std::string subject_;
  std::vector<std::string> problems_;
  int64_t left_out_ = 0;  // beyond the number that a message lists
};

// Lists the problems that a refusal names, each with its file or folder. The list is empty if
// `status` is OK.
std::vector<std::string> ListProblems(const absl::Status& status);

}  // namespace attendant
