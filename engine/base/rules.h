// Rules: checks of an input, which report the first one that fails.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attendant {

// Keeps the error of the first rule that an input breaks.
class Rules {
 public:
  // Every message begins with `prefix`.
  explicit Rules(const char* prefix = "") : prefix_(prefix) {}

  // The error of an input for which `holds` is false is INVALID_ARGUMENT, and its message is made
  // of the parts as absl::StrCat does.
  template <typename... Parts>
  void Require(bool holds, const Parts&... parts) {
    Require(absl::StatusCode::kInvalidArgument, holds, parts...);
  }

  // Likewise with another code.
  template <typename... Parts>
  void Require(absl::StatusCode code, bool holds, const Parts&... parts) {
    if (holds || !status_.ok()) return;
    status_ = absl::Status(code, absl::StrCat(prefix_, parts...));
  }

  // OK, or the error.
  const absl::Status& status() const { return status_; }

 private:
  const char* prefix_;
  absl::Status status_;
};

}  // namespace attendant
