// The heads of a model: what it makes of the hidden states after its layers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/model/layer_kinds.h"

namespace attendant {

// The ways to make one vector of the hidden states of a sequence.
enum class PoolingMode {
  kFirstToken,
  kMax,
  kMean,
  kMeanSqrtLen,
  kPositionWeightedMean,
  kLastToken,
  kFeatureMean,  // the mean without the prefix tokens
  kAttention,    // a learned query attends to all rows; only as the one mode of a model's pooling
  kLateMean      // the mean of the head's outputs for each token
};

const char* Name(PoolingMode mode);

// A term that is added to the outputs of a linear layer, after its activation.
enum class Residual {
  kNone,
  kInput,      // the layer's input, which has the same width
  kProjection  // a second linear layer of the input
};

// A linear layer of a head, with its activation.
struct DenseShape {
  int64_t width = 0;  // of its outputs
  Activation activation = Activation::kIdentity;
  Residual residual = Residual::kNone;

  // Columns that its outputs take while they are computed.
  int64_t columns() const { return residual == Residual::kProjection ? 2 * width : width; }

  bool operator==(const DenseShape&) const = default;
};

// The pooling of a sequence, or a head of each token: the vectors of one or more modes, or the
// hidden states of a token, an optional linear layer with an activation and an optional norm, an
// optional second linear layer, further ones, an optional feed-forward block, x + W2
// activation(W1 norm(x)), and optional scaling to length 1, in this order. With kLateMean, which is
// the only mode then, each token goes through these, and the results' mean is the vector of the
// sequence.
struct PoolingDescription {
  // Special values of end_id: all tokens are kept; the end is the first token with the largest id.
  static constexpr int64_t kNoEnd = -2, kLargestId = -1;

  // Their vectors are concatenated, in this order; empty: each token by itself.
  std::vector<PoolingMode> modes;
  int64_t dense_width = 0;  // outputs of the linear layer; 0: none
  Activation dense_activation = Activation::kIdentity;
  Residual dense_residual = Residual::kNone;
  bool normalize = false;
  bool has_dense_norm = false;  // after the activation; its kind is that of the layers
  int64_t output_width = 0;     // outputs of the second linear layer; 0: none
  std::vector<DenseShape> further_dense = {};  // after these; needs the first one
  DenseShape block = {};         // the feed-forward block: the width inside it; 0: none
  bool excludes_prompt = false;  // the tokens of a prompt, which a request counts, are left out
  // The tokens after the first one of this id are left out. A sequence without such a token keeps
  // all of them, as do hidden states, which have no ids.
  int64_t end_id = kNoEnd;
  // Of a head of each token: the first token of a sequence, and tokens of these ids, ascending, are
  // left out.
  bool excludes_first = false;
  std::vector<int32_t> excluded_ids = {};

  // The first linear layer.
  DenseShape first_dense() const { return {dense_width, dense_activation, dense_residual}; }
  // Whether the head takes each token by itself and makes one vector of the results.
  bool is_late() const { return !modes.empty() && modes.front() == PoolingMode::kLateMean; }

  // The width of the vectors that the first linear layer takes in a model of this hidden size.
  int64_t input_width(int64_t hidden_size) const {
    return hidden_size * std::max<int64_t>(1, static_cast<int64_t>(modes.size()));
  }
  // The width of the result.
  int64_t width(int64_t hidden_size) const {
    if (!further_dense.empty()) return further_dense.back().width;
    if (output_width > 0) return output_width;
    return dense_width > 0 ? dense_width : input_width(hidden_size);
  }
  // The columns that the widest vector on the way takes.
  int64_t widest(int64_t hidden_size) const {
    int64_t widest = std::max({input_width(hidden_size), first_dense().columns(), output_width});
    for (const DenseShape& dense : further_dense) widest = std::max(widest, dense.columns());
    // A block keeps what it adds to.
    return block.width > 0 ? std::max(widest, width(hidden_size) + block.width) : widest;
  }
  // Whether a learned query makes the vector; the layers say how many heads it has.
  bool attends() const { return modes.size() == 1 && modes.front() == PoolingMode::kAttention; }
  bool operator==(const PoolingDescription&) const = default;
};

// A head that weighs each word of the vocabulary for each token, by the masked language model that
// the encoder was trained as, and makes one vector over the vocabulary of them: Formal et al. 2021
// (SPLADE). The logits of a token are norm(activation(x Wd^T + bd)) Wo^T + bo, where Wd is [width,
// E] and Wo is [vocabulary, width]. A word's weight for a token is log(1 + max(0, logit)), and its
// weight in the sequence is the largest of them, or their sum.
struct VocabularyHeadShape {
  int64_t width = 0;
  Activation activation = Activation::kGelu;
  bool takes_sums = false;          // false: maxima
  bool has_two_logarithms = false;  // log(1 + log(1 + max(0, logit)))

  bool operator==(const VocabularyHeadShape&) const = default;
};

// The score of a text and an image by the two towers of a checkpoint: scale times the cosine of
// their pooled vectors, plus bias. Only to be shown: no request has both vectors.
struct SimilarityShape {
  float scale = 1;
  float bias = 0;

  bool operator==(const SimilarityShape&) const = default;
};

// The heads that consist of linear layers, and what each of them is for.
enum class HeadKind {
  kNone,        // hidden states as they are
  kPooling,     // the vector of a sequence
  kClassifier,  // scores of the classes of a sequence
  kTokenHead,   // scores of classes of each token, or its vector
  kLexical,  // the weight of each token, of which a sparse vector is made: the largest one of the
             // occurrences of its id
};

// Returns what the names of the head's weights begin with.
const char* Name(HeadKind kind);

struct DenseHeadShape {
  HeadKind kind;
  const PoolingDescription* shape;
};

}  // namespace attendant
