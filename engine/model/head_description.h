// The heads of a model, which compute its results from the hidden states after its layers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/names.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// The ways to pool the hidden states of a sequence into one vector.
enum class PoolingMode {
  kFirstToken,
  kMax,
  kMean,
  kMeanSqrtLen,
  kPositionWeightedMean,
  kLastToken,
  kFeatureMean,  // the mean without the prefix tokens
  kAttention,    // a learned query attends to all rows; must be the only mode of a model's pooling
  kLateMean      // the mean of the head's outputs for the tokens
};

inline constexpr Named<PoolingMode> kPoolingModeNames[] = {
    {"first_token", PoolingMode::kFirstToken},
    {"max", PoolingMode::kMax},
    {"mean", PoolingMode::kMean},
    {"mean_sqrt_len", PoolingMode::kMeanSqrtLen},
    {"position_weighted_mean", PoolingMode::kPositionWeightedMean},
    {"last_token", PoolingMode::kLastToken},
    {"feature_mean", PoolingMode::kFeatureMean},
    {"attention", PoolingMode::kAttention},
    {"late_mean", PoolingMode::kLateMean}};

constexpr const char* Name(PoolingMode mode) { return NameIn(kPoolingModeNames, mode); }

// A term that is added to the outputs of a linear layer, after its activation.
enum class Residual {
  kNone,
  kInput,      // the layer's input, which must have the same width
  kProjection  // a linear layer of the input
};

// A linear layer of a head, with its activation.
struct DenseShape {
  int64_t width = 0;  // number of outputs
  Activation activation = Activation::kIdentity;
  Residual residual = Residual::kNone;

  // The number of columns that computing the outputs takes.
  int64_t columns() const { return residual == Residual::kProjection ? 2 * width : width; }

  bool operator==(const DenseShape&) const = default;
};

// A linear layer of a head, whose weights have the prefix "<head>.<name>.".
struct NamedDense {
  std::string name;
  DenseShape shape;
};

// The pooling of a sequence, or a head that is applied to each token. In this order: the vectors of
// one or more modes, or the hidden states of a token; an optional dense layer with an activation
// and an optional norm; an optional second dense layer; further dense layers; an optional
// feed-forward block, x + W2 activation(W1 norm(x)); optional scaling to unit length. With
// kLateMean, which must be the only mode, these are applied to each token, and the vector of the
// sequence is the mean of the results.
struct PoolingDescription {
  // Special values of end_id: all tokens are pooled; the end is the first token with the largest
  // id.
  static constexpr int64_t kNoEnd = -2, kLargestId = -1;

  // The vectors of the modes are concatenated in this order. If empty, the head is applied to each
  // token.
  std::vector<PoolingMode> modes;
  int64_t dense_width = 0;  // outputs of the first dense layer; 0 if there is none
  Activation dense_activation = Activation::kIdentity;
  Residual dense_residual = Residual::kNone;
  bool normalize = false;
  bool has_dense_norm = false;  // follows the activation; of the layers' NormKind
  int64_t output_width = 0;     // outputs of the second dense layer; 0 if there is none
  std::vector<DenseShape> further_dense = {};  // requires dense_width > 0
  DenseShape block = {};         // the feed-forward block: its inner width; 0 if there is none
  bool excludes_prompt = false;  // skips the tokens of the prompt, whose number the request states
  // Tokens after the first token with this id are skipped. No token is skipped in sequences without
  // this id, or in hidden states, which have no ids.
  int64_t end_id = kNoEnd;
  // Tokens with this id at the end of a sequence are skipped, except for its first token; -1 if no
  // tokens are skipped. Hidden states have no ids.
  int64_t padding_id = -1;
  // Token heads skip the first token of a sequence, and tokens with these ids, which are ascending.
  bool excludes_first = false;
  std::vector<int32_t> excluded_ids = {};

  // The first dense layer.
  DenseShape first_dense() const { return {dense_width, dense_activation, dense_residual}; }
  // All dense layers, in the order in which they are applied.
  std::vector<NamedDense> dense_layers() const {
    std::vector<NamedDense> layers;
    if (dense_width != 0) layers.push_back({"dense", first_dense()});
    if (output_width != 0) layers.push_back({"output", {output_width}});
    for (size_t i = 0; i < further_dense.size(); ++i) {
      layers.push_back({"further." + std::to_string(i), further_dense[i]});
    }
    return layers;
  }
  // Whether the head is applied to each token and the results are averaged.
  bool is_late() const { return !modes.empty() && modes.front() == PoolingMode::kLateMean; }

  // The input width of the first dense layer in a model of this hidden size.
  int64_t input_width(int64_t hidden_size) const {
    return hidden_size * std::max<int64_t>(1, static_cast<int64_t>(modes.size()));
  }
  // The width of the output.
  int64_t width(int64_t hidden_size) const {
    if (!further_dense.empty()) return further_dense.back().width;
    if (output_width > 0) return output_width;
    return dense_width > 0 ? dense_width : input_width(hidden_size);
  }
  // The number of columns of the widest intermediate vector.
  int64_t widest(int64_t hidden_size) const {
    int64_t widest = input_width(hidden_size);
    for (const NamedDense& dense : dense_layers()) widest = std::max(widest, dense.shape.columns());
    // The block needs its input until it adds its output.
    return block.width > 0 ? std::max(widest, width(hidden_size) + block.width) : widest;
  }
  // Whether a learned query pools by attention, with as many heads as the layers have.
  bool attends() const { return modes.size() == 1 && modes.front() == PoolingMode::kAttention; }
  bool operator==(const PoolingDescription&) const = default;
};

// The MLM head, and the sparse vector that SPLADE computes from its logits (Formal et al. 2021).
// The logits of a token are norm(activation(x Wd^T + bd)) Wo^T + bo, where Wd is [width, E] and Wo
// is [vocabulary, width]. The weight of a token id for one token is log(1 + max(0, logit)); its
// weight in the sequence is the maximum over the tokens, or the sum.
struct VocabularyHeadShape {
  int64_t width = 0;
  Activation activation = Activation::kGelu;
  bool takes_sums = false;          // whether weights are summed over the tokens
  bool has_two_logarithms = false;  // the weight is log(1 + log(1 + max(0, logit)))

  bool operator==(const VocabularyHeadShape&) const = default;
};

// The similarity of a text and an image in a checkpoint with two towers: scale times the cosine of
// their pooled vectors, plus bias. For display only: no request has both vectors.
struct SimilarityShape {
  float scale = 1;
  float bias = 0;

  bool operator==(const SimilarityShape&) const = default;
};

// The heads that consist of dense layers, by purpose.
enum class HeadKind {
  kNone,        // copies hidden states
  kPooling,     // the vector of a sequence
  kClassifier,  // class scores of a sequence
  kTokenHead,   // class scores of each token, or its vector
  kLexical,  // the weight of each token; in a sparse vector, a token id has the largest weight of
             // its occurrences
};

inline constexpr Named<HeadKind> kHeadKindNames[] = {{"none", HeadKind::kNone},
                                                     {"pooling", HeadKind::kPooling},
                                                     {"classifier", HeadKind::kClassifier},
                                                     {"token_head", HeadKind::kTokenHead},
                                                     {"lexical_head", HeadKind::kLexical}};

// Returns the prefix of the names of the head's weights.
constexpr const char* Name(HeadKind kind) { return NameIn(kHeadKindNames, kind); }

struct DenseHeadShape {
  HeadKind kind;
  const PoolingDescription* shape;
};

}  // namespace attendant
