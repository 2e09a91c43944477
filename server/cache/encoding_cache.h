// EncodingCache, which knows the tokens of the texts that a client has sent before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/cache/result_cache.h"
#include "server/text/tokenizer.h"

namespace attendant::server {

// For the texts of one request. One thread.
class EncodingCache {
 public:
  // `tokenizer` is a number that no other tokenizer has. Encodings with places are not kept.
  EncodingCache(const ClientCache& cache, int64_t tokenizer, absl::string_view prompt,
                const text::EncodeOptions& options);

  // Returns the encoding, without places, of a text or, if `pair` is not null, of both.
  std::optional<text::Encoding> Find(absl::string_view text, const std::string* pair);
  // Keeps the encoding of what Find was asked for last, unless there is no memory for it.
  void Keep(const text::Encoding& encoding);

 private:
  ResultCache* const cache_;  // null: nothing is known, and nothing is kept
  KeySource source_;
  size_t shared_ = 0;  // bytes of `source_` that all texts have
  CacheKey key_ = {};
};

}  // namespace attendant::server
