// NamePattern: the name of a weight in a family's files, and names that families share.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/checkpoint/files/tensor_part.h"

namespace attendant {

// A weight's canonical name, and its name in a file without the family's prefix. A name that starts
// with "/" never gets the prefix. "{i}" stands for the weight set of the layer, "{j}" counts the
// feed-forward blocks before the last one of a layer, and "{e}" the experts of a mixture, which are
// the rows of one tensor (RowUnit::kExpert). The name of a linear layer or norm stands for both its
// ".weight" and its ".bias". If a weight has several patterns, the first that a file has is taken.
struct NamePattern {
  std::string canonical;
  std::string in_file;
  RowPart rows = {};
  RowUnit unit = RowUnit::kTensor;
  bool transposed = false;
};

using NamePatterns = std::vector<NamePattern>;

// Returns the places where a file may have the tensor `canonical`, by the patterns of all lists in
// their order, with `prefix` before its name. The usual place comes first. The list is empty if
// there is no pattern for the tensor.
std::vector<TensorPart> PlacesInFile(std::initializer_list<const NamePatterns*> lists,
                                     const std::string& prefix, const std::string& canonical);

// Joins the lists. The patterns of each list replace all patterns that earlier lists have for the
// same weights.
NamePatterns JoinNames(std::initializer_list<NamePatterns> lists);

// Returns patterns for weights that are stacked in one tensor, in this order and with equal numbers
// of rows of each `unit`.
NamePatterns Stacked(const std::vector<std::string>& weights, const std::string& in_file,
                     RowUnit unit = RowUnit::kTensor);
// Does so for the projections of queries, keys and values.
NamePatterns StackedInputs(const std::string& in_file, RowUnit unit = RowUnit::kTensor);

// Returns patterns for the parts of a layer whose names in the file begin with `layer`. The names
// are, in this order, of queries, keys, values, the output of attention, its norm, both linear
// layers of the feed-forward block, and its norm.
NamePatterns LayerNames(const std::string& layer, const std::array<const char*, 8>& names);

// BERT's embedding tensors only, and all of its tensors except the heads'.
NamePatterns BertEmbeddingNames();
NamePatterns BertNames();
// The names that Jina's code for XLM-RoBERTa has for the same layers, and for the first norm.
NamePatterns JinaRobertaNames();
// The layers of BART and of others that are derived from fairseq, and the norm after them.
NamePatterns BartLayerNames();

// The two linear layers of a head that scores classes.
NamePatterns ClassifierNames(const std::string& dense, const std::string& output);

// The head of a masked language model. Most files leave out the decoder's weight because it is the
// table of words, which then stands for it. `bias`, if not empty, is a second name of the decoder's
// bias; where the two differ, the library adds the decoder's own.
NamePatterns VocabularyHeadNames(const std::string& dense, const std::string& norm,
                                 const std::string& decoder, const std::string& bias = "");
NamePatterns BertVocabularyHeadNames();
NamePatterns RobertaVocabularyHeadNames();

}  // namespace attendant
