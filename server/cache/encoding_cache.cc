#include "server/cache/encoding_cache.h"

#include <algorithm>
#include <memory>
#include <new>

namespace attendant::server {
namespace {

constexpr size_t kIdBytes = sizeof(uint32_t);
// An id, a type and the text that the token is of; types of all models fit a byte.
constexpr size_t kTokenBytes = kIdBytes + 2;

std::string ToBytes(const text::Encoding& encoding) {
  const size_t tokens = encoding.ids.size();
  std::string bytes(1 + tokens * kTokenBytes, encoding.truncated ? '\1' : '\0');
  char* to = bytes.data() + 1;
  to = std::copy_n(reinterpret_cast<const char*>(encoding.ids.data()), tokens * kIdBytes, to);
  to = std::copy(encoding.type_ids.begin(), encoding.type_ids.end(), to);
  std::copy(encoding.text_of.begin(), encoding.text_of.end(), to);
  return bytes;
}

text::Encoding FromBytes(const std::string& bytes) {
  const size_t tokens = (bytes.size() - 1) / kTokenBytes;
  text::Encoding encoding;
  encoding.truncated = bytes[0] != '\0';
  encoding.ids.resize(tokens);
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data() + 1);
  std::copy_n(from, tokens * kIdBytes, reinterpret_cast<unsigned char*>(encoding.ids.data()));
  from += tokens * kIdBytes;
  encoding.type_ids.assign(from, from + tokens);
  encoding.text_of.assign(from + tokens, from + 2 * tokens);
  return encoding;
}

}  // namespace

EncodingCache::EncodingCache(ResultCache* cache, absl::string_view client, int64_t tokenizer,
                             absl::string_view prompt, const text::EncodeOptions& options)
    : cache_(options.places ? nullptr : cache) {
  if (cache_ == nullptr) return;
  source_.Add(static_cast<int64_t>(CacheKind::kTokens));
  source_.AddText(client);
  source_.Add(tokenizer);
  source_.AddText(prompt);
  source_.Add(static_cast<int64_t>(options.max_length));
  source_.Add(options.add_special_tokens ? 1 : 0);
  source_.Add(static_cast<int64_t>(options.truncation_side));
  shared_ = source_.bytes().size();
}

std::optional<text::Encoding> EncodingCache::Find(absl::string_view text, const std::string* pair) {
  if (cache_ == nullptr) return std::nullopt;
  source_.Truncate(shared_);
  source_.AddText(text);
  source_.Add(pair == nullptr ? 0 : 1);
  if (pair != nullptr) source_.AddText(*pair);
  key_ = cache_->KeyOf(source_);
  const ResultCache::Result found = cache_->Find(CacheKind::kTokens, key_);
  if (found == nullptr) return std::nullopt;
  return FromBytes(*found);
}

void EncodingCache::Keep(const text::Encoding& encoding) {
  if (cache_ == nullptr) return;
  const auto fits = [](uint32_t type) { return type <= 0xFF; };
  if (!std::all_of(encoding.type_ids.begin(), encoding.type_ids.end(), fits)) return;
  try {
    cache_->Add(key_, std::make_shared<const std::string>(ToBytes(encoding)));
  } catch (const std::bad_alloc&) {
    // The request does without.
  }
}

}  // namespace attendant::server
