// Where an answer over HTTP ends on a connection that stays open.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "absl/strings/match.h"

namespace attendant::test_support {

// Returns the size of the first answer in `bytes`, with interim ones (100 Continue) before it;
// nothing if it is not whole. `head_only`: it answers HEAD. Answers have a length, as those of the
// server have.
inline std::optional<size_t> SizeOfAnswer(const std::string& bytes, bool head_only = false) {
  size_t begin = 0;
  while (true) {
    const size_t end = bytes.find("\r\n\r\n", begin);
    if (end == bytes.npos) return std::nullopt;
    const std::string head = bytes.substr(begin, end + 2 - begin);
    begin = end + 4;
    if (absl::StrContains(head, " 100 Continue\r\n")) continue;
    const size_t length = head.find("\r\nContent-Length: ");
    if (head_only || length == head.npos || absl::StrContains(head, " 304 Not Modified\r\n")) {
      return begin;
    }
    const size_t size = begin + std::strtoull(head.c_str() + length + 18, nullptr, 10);
    return size <= bytes.size() ? std::optional(size) : std::nullopt;
  }
}

}  // namespace attendant::test_support
