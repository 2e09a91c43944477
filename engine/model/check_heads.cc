#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/model/check_parts.h"

namespace attendant {
namespace {

// Only the pooling supports attention: the other heads have no query.
absl::Status CheckAttention(HeadKind kind, const PoolingDescription& shape,
                            const LayerShape& layer) {
  if (!absl::c_linear_search(shape.modes, PoolingMode::kAttention)) return absl::OkStatus();
  const int64_t heads = layer.attention.heads;
  const bool fits = kind == HeadKind::kPooling && shape.attends();
  const bool divides = heads > 0 && layer.hidden_size % heads == 0;
  if (fits && divides && shape.dense_width > 0) return absl::OkStatus();
  return BadModel(
      "attention pooling: expected the only mode of a pooling with a dense layer, and heads that "
      "divide hidden_size ",
      layer.hidden_size, "; got ", shape.modes.size(), " modes of ", Name(kind), ", dense_width ",
      shape.dense_width, " and ", heads, " heads");
}

// A layer's input can only be added to an output of the same width.
absl::Status CheckResiduals(const PoolingDescription& shape, int64_t hidden_size) {
  int64_t width = shape.input_width(hidden_size);
  if (shape.dense_width == 0 && shape.dense_residual == Residual::kInput) {
    return BadModel("expected a dense layer of width ", width, " (its input is added); got 0");
  }
  for (const auto& [name, dense] : shape.dense_layers()) {
    const int64_t in = std::exchange(width, dense.width);
    if (dense.residual != Residual::kInput || in == dense.width) continue;
    return BadModel("expected a dense layer of width ", in, " (its input is added); got ",
                    dense.width);
  }
  return absl::OkStatus();
}

absl::Status CheckDenseHeads(const ModelDescription& model) {
  for (const auto& [kind, shape] : model.dense_heads()) {
    const bool is_of_tokens = kind == HeadKind::kTokenHead || kind == HeadKind::kLexical;
    if (is_of_tokens && !shape->modes.empty()) {
      return BadModel(Name(kind), ": expected 0 pooling modes; got ", shape->modes.size());
    }
    const bool has_second = shape->output_width > 0 || !shape->further_dense.empty();
    if (has_second && shape->dense_width == 0) {
      return BadModel(Name(kind),
                      ": expected a dense layer after pooling before a second dense layer; got "
                      "dense_width 0");
    }
    RETURN_IF_ERROR(CheckAttention(kind, *shape, model.layer));
    if (shape->block.width < 0 || (shape->block.width > 0 && shape->dense_width == 0)) {
      return BadModel(Name(kind),
                      ": expected a feed-forward block of positive width after a dense layer; "
                      "got width ",
                      shape->block.width, " after dense_width ", shape->dense_width);
    }
    for (const DenseShape& dense : shape->further_dense) {
      if (dense.width > 0) continue;
      return BadModel(Name(kind), ": expected dense layers of positive width; got ", dense.width);
    }
    RETURN_IF_ERROR(CheckResiduals(*shape, model.layer.hidden_size));
    if (absl::c_linear_search(shape->modes, PoolingMode::kLateMean) &&
        (kind != HeadKind::kClassifier || shape->modes.size() > 1)) {
      return BadModel(Name(PoolingMode::kLateMean),
                      ": expected the only pooling mode of a classifier; got ", shape->modes.size(),
                      " modes of ", Name(kind));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckVocabularyHead(const ModelDescription& model) {
  if (model.lexical_head) {
    const int64_t width = model.lexical_head->width(model.layer.hidden_size);
    if (width != 1 || !model.embeddings || model.vocabulary_head) {
      return BadModel(
          "lexical_head: expected width 1 in a model with embeddings and without an MLM head; got ",
          width, model.embeddings ? "" : " without embeddings",
          model.vocabulary_head ? " with an MLM head" : "");
    }
  }
  if (!model.vocabulary_head) return absl::OkStatus();
  if (model.embeddings && model.vocabulary_head->width > 0) return absl::OkStatus();
  return BadModel("vocabulary_head: expected a positive width in a model with embeddings; got ",
                  model.vocabulary_head->width, model.embeddings ? "" : " without embeddings");
}

}  // namespace

absl::Status CheckHeads(const ModelDescription& model) {
  absl::Status status = CheckDenseHeads(model);
  status.Update(CheckVocabularyHead(model));
  return status;
}

}  // namespace attendant
