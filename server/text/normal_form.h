// Unicode normal forms, with Unicode 9 data as in the original library, in linear time for any
// marks (except for sorting runs of them).
#pragma once

#include <cstdint>
#include <vector>

#include "server/text/base/items.h"

namespace attendant::text {

// A replacement code point, as the original describes it. A shift of 0 or less replaces the next
// input item and drops the -shift items after it; a positive shift adds to the previous item.
struct Change {
  char32_t code;
  int32_t shift;
};

// Replaces `items` by `changes`, which inherit the places of the items that they replace.
void ApplyChanges(const std::vector<Change>& changes, Items& items);

struct NormalForm {
  bool compose = false;
  bool compatible = false;
};

void Normalize(const NormalForm& form, Items& items);

}  // namespace attendant::text
