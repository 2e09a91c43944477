#include "engine/layers/state/batch.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "engine/base/rules.h"
#include "engine/base/status_macros.h"
#include "engine/model/model_facts.h"

namespace attendant {
namespace {

void RequirePositions(const PackedBatch& batch, int64_t max_tokens, Rules& rules) {
  const auto count = static_cast<int64_t>(batch.positions.size());
  rules.Require(count == 0 || count == batch.tokens(), "positions: expected ", batch.tokens(),
                " (one per token); got ", count);
  for (const int32_t position : batch.positions) {
    rules.Require(position >= 0 && position < max_tokens, "positions: expected 0..", max_tokens - 1,
                  "; got ", position);
  }
}

void RequireCrossKv(const CrossKv& cross_kv, int64_t max_tokens, Rules& rules) {
  const int64_t rows = cross_kv.keys.rows, values = cross_kv.values.rows;
  const auto positions = static_cast<int64_t>(cross_kv.positions.size());
  rules.Require(values == rows && (positions == rows || positions == 0), "memory: expected ", rows,
                " values and 0 or ", rows, " positions (one per key); got ", values, " values and ",
                positions, " positions");
  rules.Require(absl::StatusCode::kResourceExhausted, rows <= max_tokens,
                "memory: expected at most ", max_tokens, " rows; got ", rows);
}

void RequireSizes(const PackedBatch& batch, int64_t max_tokens, Rules& rules) {
  const absl::Span<const int32_t> bounds = batch.cu_seqlens, rows = batch.selected_rows;
  rules.Require(
      !bounds.empty() && bounds.front() == 0 && std::is_sorted(bounds.begin(), bounds.end()),
      "cu_seqlens: expected a non-decreasing list from 0");
  const std::pair<const char*, size_t> lists[] = {{"bias", batch.bias.size()},
                                                  {"head_gates", batch.head_gates.size()},
                                                  {"states", batch.states.size()},
                                                  {"memory", batch.cross_kv.size()}};
  for (const auto& [name, size] : lists) {
    rules.Require(size == 0 || static_cast<int64_t>(size) == batch.sequences(), name, ": expected ",
                  batch.sequences(), " (one per sequence); got ", size);
  }
  rules.Require(rows.empty() || (rows.front() >= 0 && rows.back() < batch.tokens() &&
                                 std::adjacent_find(rows.begin(), rows.end(),
                                                    std::greater_equal<>()) == rows.end()),
                "selected_rows: expected strictly ascending rows in 0..", batch.tokens() - 1);
  rules.Require(absl::StatusCode::kResourceExhausted, batch.tokens() <= max_tokens,
                "batch: expected at most ", max_tokens, " tokens; got ", batch.tokens());
  RequirePositions(batch, max_tokens, rules);
  for (const CrossKv& cross_kv : batch.cross_kv) RequireCrossKv(cross_kv, max_tokens, rules);
}

// Requires that the tokens of each sequence span at most `most` positions. If `most` is 0, they may
// span any number.
void RequireMixedPositions(const PackedBatch& batch, int64_t most, Rules& rules) {
  for (int64_t i = 0; most > 0 && i < batch.sequences(); ++i) {
    const int64_t begin = batch.cu_seqlens[i], end = batch.cu_seqlens[i + 1];
    if (begin == end) continue;
    const int64_t reach = batch.positions.empty()
                              ? end - begin
                              : batch.positions[end - 1] - batch.positions[begin] + 1;
    rules.Require(reach <= most, "batch: expected sequences of at most ", most, " positions; got ",
                  reach);
  }
}

// Requires that the model supports the batch's optional inputs.
void RequireFit(const PackedBatch& batch, const ModelDescription& model, Rules& rules) {
  rules.Require(batch.bias.empty() || ScoresPairs(model.layer.attention.kind),
                "bias: not supported by this model: ", Name(model.layer.attention.kind),
                " attention has no score per query and key");
  if (!batch.states.empty()) {
    const std::string why = WhyNotInChunks(model);
    rules.Require(why.empty(), "states: not supported by this model: ", why);
  }
  RequireMixedPositions(batch, model.layer.attention.linformer.positions, rules);
}

}  // namespace

absl::Status CheckBatch(const PackedBatch& batch, const ModelDescription& model,
                        int64_t max_tokens) {
  Rules rules;
  RequireSizes(batch, max_tokens, rules);
  RETURN_IF_ERROR(rules.status());
  RequireFit(batch, model, rules);
  return rules.status();
}

}  // namespace attendant
