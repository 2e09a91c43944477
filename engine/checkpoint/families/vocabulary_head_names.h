// The names that families which read text have for the head of a masked language model. Most files
// leave out the decoder's weight, because it is the table of words, which stands for it then. Its
// bias has two names in some libraries' versions; the decoder's own is the one that is added where
// the two differ.
#pragma once

#include <vector>

#include "engine/checkpoint/families/families.h"

namespace attendant {

std::vector<NamePattern> BertVocabularyHeadNames();
std::vector<NamePattern> RobertaVocabularyHeadNames();
std::vector<NamePattern> ElectraVocabularyHeadNames();
std::vector<NamePattern> DistilBertVocabularyHeadNames();
std::vector<NamePattern> AlbertVocabularyHeadNames();
// Has both heads that the library has for version 2: the old one, and the one of checkpoints with
// "legacy": false.
std::vector<NamePattern> DebertaVocabularyHeadNames();

}  // namespace attendant
