// The characters that stand for bytes in vocabularies of GPT-2 and its successors.
#pragma once

#include "server/text/base/items.h"

namespace attendant::text {

// One for each of 256 bytes.
const char16_t* ByteCharacters();

// Appends, for each item, the characters of the bytes of its UTF-8.
void ToByteCharacters(ItemSpan text, Items& out);

}  // namespace attendant::text
