#include <utility>

#include "absl/algorithm/container.h"
#include "engine/model/check_parts.h"

namespace attendant {
namespace {

// Only the pooling supports attention: the other heads have no query.
void RequireAttention(HeadKind kind, const PoolingDescription& shape, const LayerShape& layer,
                      DescriptionRules& rules) {
  if (!absl::c_linear_search(shape.modes, PoolingMode::kAttention)) return;
  const int64_t heads = layer.attention.heads;
  const bool divides = heads > 0 && layer.hidden_size % heads == 0;
  rules.Require(
      kind == HeadKind::kPooling && shape.attends() && divides && shape.dense_width > 0,
      "attention pooling: expected the only mode of a pooling with a dense layer, and heads that "
      "divide hidden_size ",
      layer.hidden_size, "; got ", shape.modes.size(), " modes of ", Name(kind), ", dense_width ",
      shape.dense_width, " and ", heads, " heads");
}

// A layer's input can only be added to an output of the same width.
void RequireResiduals(const PoolingDescription& shape, int64_t hidden_size,
                      DescriptionRules& rules) {
  int64_t width = shape.input_width(hidden_size);
  rules.Require(shape.dense_width > 0 || shape.dense_residual != Residual::kInput,
                "expected a dense layer of width ", width, " (its input is added); got ",
                shape.dense_width);
  for (const auto& [name, dense] : shape.dense_layers()) {
    const int64_t in = std::exchange(width, dense.width);
    rules.Require(in == dense.width || dense.residual != Residual::kInput,
                  "expected a dense layer of width ", in, " (its input is added); got ",
                  dense.width);
  }
}

void RequireDenseHead(HeadKind kind, const PoolingDescription& shape, const LayerShape& layer,
                      DescriptionRules& rules) {
  const bool is_of_tokens = kind == HeadKind::kTokenHead || kind == HeadKind::kLexical;
  rules.Require(!is_of_tokens || shape.modes.empty(), Name(kind),
                ": expected 0 pooling modes; got ", shape.modes.size());
  const bool has_second = shape.output_width > 0 || !shape.further_dense.empty();
  rules.Require(shape.dense_width != 0 || !has_second, Name(kind),
                ": expected a dense layer after pooling before a second dense layer; got "
                "dense_width 0");
  RequireAttention(kind, shape, layer, rules);
  const int64_t block = shape.block.width;
  rules.Require(block == 0 || (block > 0 && shape.dense_width != 0), Name(kind),
                ": expected a feed-forward block of positive width after a dense layer; got width ",
                block, " after dense_width ", shape.dense_width);
  for (const DenseShape& dense : shape.further_dense) {
    rules.Require(dense.width > 0, Name(kind), ": expected dense layers of positive width; got ",
                  dense.width);
  }
  RequireResiduals(shape, layer.hidden_size, rules);
  const bool is_late = absl::c_linear_search(shape.modes, PoolingMode::kLateMean);
  rules.Require(!is_late || (kind == HeadKind::kClassifier && shape.modes.size() == 1),
                Name(PoolingMode::kLateMean),
                ": expected the only pooling mode of a classifier; got ", shape.modes.size(),
                " modes of ", Name(kind));
}

}  // namespace

void RequireHeads(const ModelDescription& model, DescriptionRules& rules) {
  for (const auto& [kind, shape] : model.dense_heads()) {
    RequireDenseHead(kind, *shape, model.layer, rules);
  }
  const char* without_embeddings = model.embeddings ? "" : " without embeddings";
  if (model.lexical_head) {
    const int64_t width = model.lexical_head->width(model.layer.hidden_size);
    rules.Require(
        width == 1 && model.embeddings && !model.vocabulary_head,
        "lexical_head: expected width 1 in a model with embeddings and without an MLM head; got ",
        width, without_embeddings, model.vocabulary_head ? " with an MLM head" : "");
  }
  if (model.vocabulary_head) {
    rules.Require(model.embeddings && model.vocabulary_head->width > 0,
                  "vocabulary_head: expected a positive width in a model with embeddings; got ",
                  model.vocabulary_head->width, without_embeddings);
  }
}

}  // namespace attendant
