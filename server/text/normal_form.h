// Unicode's normal forms, with the data of Unicode 9 as in the original library, in linear time
// whatever the marks (but for sorting runs of them).
#pragma once

#include <cstdint>
#include <vector>

#include "server/text/base/items.h"

namespace attendant::text {

// A code point that replaces others, as the original describes it. A shift of 0 or less replaces
// the next input item and drops the -shift items after it; a positive one adds to the item before.
struct Change {
  char32_t code;
  int32_t shift;
};

// Replaces `items` by `changes`, which get their places from the items that they replace.
void ApplyChanges(const std::vector<Change>& changes, Items& items);

struct NormalForm {
  bool compose = false;
  bool compatible = false;
};

void Normalize(const NormalForm& form, Items& items);

}  // namespace attendant::text
