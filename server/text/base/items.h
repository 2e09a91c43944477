// Text while it is being tokenized: code points that remember their place in the original.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attendant::text {

// A code point, and the bytes [begin, end) of the original text that it comes from.
struct Item {
  char32_t code;
  uint32_t begin, end;
};

using Items = std::vector<Item>;
using ItemSpan = absl::Span<const Item>;

// A part [first, last) of items: text that the model tokenizes, or an added token.
struct Piece {
  static constexpr int64_t kText = -1;

  uint32_t first, last;
  int64_t added_id = kText;

  bool is_text() const { return added_id == kText; }
};

// Items, and the pieces that they are split into, in order. No piece is empty.
struct Pieces {
  Items items;
  std::vector<Piece> pieces;
};

// Appends the code points of `text`. Returns false, having appended some of them, if it is not
// valid UTF-8: surrogates, overlong forms and what is beyond U+10FFFF are not.
bool AppendItems(absl::string_view text, Items& items);

// Calls `take` with each code point of `text`; with U+FFFD for each byte that is not of valid
// UTF-8.
void ForEachCode(absl::string_view text, absl::FunctionRef<void(char32_t code)> take);

// Returns the byte at which `text` stops being valid UTF-8.
size_t ValidPrefix(absl::string_view text);

// Appends the UTF-8 of `code`.
void AppendUtf8(char32_t code, std::string& text);

// The bytes of the UTF-8 of `code`.
inline uint32_t Utf8Size(char32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

// The UTF-8 of items.
std::string ToUtf8(ItemSpan items);

// The code points of valid UTF-8.
std::u32string ToCodes(absl::string_view text);

// The UTF-8 of a piece, with the item that each byte belongs to. Reusable, to save allocations.
class PieceBytes {
 public:
  void Assign(ItemSpan items);
  absl::string_view bytes() const { return bytes_; }
  uint32_t ItemAt(size_t byte) const {
    return ascii_ ? static_cast<uint32_t>(byte) : item_at_[byte];
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> item_at_;
  bool ascii_ = true;
};

}  // namespace attendant::text
