// Items, text during tokenization: code points with their places in the original.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attendant::text {

// A code point, and its bytes [begin, end) in the original text.
struct Item {
  char32_t code;
  uint32_t begin, end;
};

using Items = std::vector<Item>;
using ItemSpan = absl::Span<const Item>;

// A range [first, last) of items: text for the model, or an added token.
struct Piece {
  static constexpr int64_t kText = -1;

  uint32_t first, last;
  int64_t added_id = kText;

  bool is_text() const { return added_id == kText; }
};

// Items, and the pieces into which they are split, in order. No piece is empty.
struct Pieces {
  Items items;
  std::vector<Piece> pieces;
};

// Appends the code points of `text`. Returns false, having appended some of them, if it is not
// valid UTF-8, which excludes surrogates, overlong forms and code points beyond U+10FFFF.
bool AppendItems(absl::string_view text, Items& items);

// Calls `take` with each code point of `text`, and with U+FFFD for each byte that is not valid
// UTF-8.
void ForEachCode(absl::string_view text, absl::FunctionRef<void(char32_t code)> take);

// Returns the first byte at which `text` is not valid UTF-8.
size_t ValidPrefix(absl::string_view text);

// Appends the UTF-8 of `code`.
void AppendUtf8(char32_t code, std::string& text);

// Returns the number of UTF-8 bytes of `code`.
inline uint32_t Utf8Size(char32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

// Returns the UTF-8 of items.
std::string ToUtf8(ItemSpan items);

// Returns the code points of valid UTF-8.
std::u32string ToCodes(absl::string_view text);

// The UTF-8 of a piece, and the item of each byte. Reusable, to save allocations.
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
