// JsonSource, a stream buffer over JSON text in several slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <streambuf>

#include "server/wire/payload.h"

namespace attendant::server {

// Ends early at a string or number that is too long, because the parser keeps several copies of a
// token. Not thread-safe.
class JsonSource final : public std::streambuf {
 public:
  static constexpr int64_t kMostTokenBytes = 4096;

  // Covers the bytes [begin, end) of the slices, which must contain them and outlive this object.
  JsonSource(const MessageSlices& slices, int64_t begin, int64_t end);

  int64_t position() const { return position_; }  // of the next character, in the slices
  int64_t left() const { return end_ - position_; }
  bool has_long_token() const { return token_ > most_token_bytes_; }
  // Limits following strings and numbers; kMostTokenBytes initially.
  void SetMostTokenBytes(int64_t bytes) { most_token_bytes_ = bytes; }
  int64_t most_token_bytes() const { return most_token_bytes_; }

 protected:
  int_type underflow() override;
  int_type uflow() override;

 private:
  void FollowTokens(char c);

  const MessageSlices& slices_;
  int64_t position_;
  const int64_t end_;
  size_t slice_ = 0;
  size_t offset_;  // in the slice
  int64_t most_token_bytes_ = kMostTokenBytes;
  int64_t token_ = 0;  // bytes of the current string or number
  bool in_text_ = false;
  bool escaped_ = false;
};

}  // namespace attendant::server
