// The characters that represent bytes in the vocabularies of GPT-2 and its successors.
#pragma once

#include "server/text/base/items.h"

namespace attendant::text {

// Returns one for each of the 256 bytes.
const char16_t* ByteCharacters();

// Appends, for each item, the characters for its UTF-8 bytes.
void ToByteCharacters(ItemSpan text, Items& out);

}  // namespace attendant::text
