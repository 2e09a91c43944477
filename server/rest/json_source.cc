#include "server/rest/json_source.h"

namespace attendant::server {

JsonSource::JsonSource(const MessageSlices& slices, int64_t begin, int64_t end)
    : slices_(slices), position_(begin), end_(end), offset_(static_cast<size_t>(begin)) {}

JsonSource::int_type JsonSource::underflow() {
  if (position_ >= end_ || has_long_token()) return traits_type::eof();
  while (offset_ >= slices_[slice_].size()) offset_ -= slices_[slice_++].size();
  return slices_[slice_].begin()[offset_];
}

JsonSource::int_type JsonSource::uflow() {
  const int_type c = underflow();
  if (c == traits_type::eof()) return c;
  ++position_;
  ++offset_;
  FollowTokens(traits_type::to_char_type(c));
  return c;
}

void JsonSource::FollowTokens(char c) {
  ++token_;
  if (in_text_) {
    if (c == '"' && !escaped_) in_text_ = false;
    escaped_ = c == '\\' && !escaped_;
  } else if (c == '"') {
    in_text_ = true;
    token_ = 0;
  } else if (c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}' ||
             static_cast<unsigned char>(c) <= ' ') {
    token_ = 0;
  }
}

}  // namespace attendant::server
