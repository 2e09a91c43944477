// The keys of results in the cache, which are digests of all that a result depends on.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attendant::server {

using CacheKey = std::array<unsigned char, 16>;

// The bytes that a key is made of. Each field is of a fixed size or begins with its own, so that
// no two lists of fields have the same bytes if their fields come in the same order.
class KeySource {
 public:
  void Add(int64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void AddText(absl::string_view text);
  // Short if all numbers are equal, or each is one more than the number before.
  void AddNumbers(absl::Span<const int32_t> numbers);
  // Adds a field of `size` bytes, and returns where to write them.
  char* AddBytes(int64_t size);

  // Leaves the first `size` bytes.
  void Truncate(size_t size) { bytes_.resize(size); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Makes keys with a secret of its own, so that a client cannot find two sources with the same key.
// Thread-safe.
class KeyMaker {
 public:
  KeyMaker();
  ~KeyMaker();

  // Throws std::bad_alloc.
  CacheKey Make(absl::string_view source) const;

 private:
  class Secret;
  const std::unique_ptr<const Secret> secret_;
};

// Keys are random to begin with.
struct HashOfKey {
  size_t operator()(const CacheKey& key) const {
    size_t hash;
    std::memcpy(&hash, key.data(), sizeof hash);
    return hash;
  }
};

}  // namespace attendant::server
