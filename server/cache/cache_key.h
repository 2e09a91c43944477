// Keys of cached results: digests of everything on which a result depends.
#pragma once

#include <openssl/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attendant::server {

using CacheKey = std::array<unsigned char, 16>;

// The bytes from which a key is computed. Each field has a fixed size or is preceded by its size,
// so that different fields in the same order never produce the same bytes.
class KeySource {
 public:
  void Add(int64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void AddText(absl::string_view text);
  // Compact if all numbers are equal, or each is one more than the previous.
  void AddNumbers(absl::Span<const int32_t> numbers);
  // Adds a field of `size` bytes, and returns the place to write them.
  char* AddBytes(int64_t size);

  // Keeps the first `size` bytes.
  void Truncate(size_t size) { bytes_.resize(size); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Computes keys with a secret of its own, so that clients cannot construct two sources with the
// same key. Thread-safe.
class KeyMaker {
 public:
  KeyMaker();

  // Throws std::bad_alloc.
  CacheKey Make(absl::string_view source) const;

 private:
  std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)> mac_;  // has the secret, and no data
};

}  // namespace attendant::server
