// EncodingCache, the cached tokens of texts that a client has sent before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/cache/result_cache.h"
#include "server/text/tokenizer.h"

namespace attendant::server {

// For the texts of one request. Not thread-safe.
class EncodingCache {
 public:
  // Looks in `cache`, unless null, for what this client has sent, so that response times do not
  // reveal what other clients have. `tokenizer` is a number unique to the tokenizer. Encodings with
  // places are not cached.
  EncodingCache(ResultCache* cache, absl::string_view client, int64_t tokenizer,
                absl::string_view prompt, const text::EncodeOptions& options);

  // Returns the cached encoding, without places, of a text or, if `pair` is not null, of both.
  std::optional<text::Encoding> Find(absl::string_view text, const std::string* pair);
  // Stores the encoding of the texts last passed to Find, unless there is no memory for it.
  void Keep(const text::Encoding& encoding);

 private:
  ResultCache* const cache_;  // null: no cache
  KeySource source_;
  size_t shared_ = 0;  // bytes of `source_` common to all texts
  CacheKey key_ = {};
};

}  // namespace attendant::server
