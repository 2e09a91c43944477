#include "engine/layers/state/batch.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/model/model_facts.h"

namespace attendant {
namespace {

absl::Status CheckPositions(const PackedBatch& batch, int64_t max_tokens) {
  if (batch.positions.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(batch.positions.size()) != batch.tokens()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "positions: expected ", batch.tokens(), " (one per token); got ", batch.positions.size()));
  }
  for (const int32_t position : batch.positions) {
    if (position >= 0 && position < max_tokens) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("positions: expected 0..", max_tokens - 1, "; got ", position));
  }
  return absl::OkStatus();
}

absl::Status CheckCrossKv(const CrossKv& cross_kv, int64_t max_tokens) {
  const int64_t rows = cross_kv.keys.rows;
  const int64_t positions = static_cast<int64_t>(cross_kv.positions.size());
  if (cross_kv.values.rows != rows || (positions != rows && positions != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "memory: expected ", rows, " values and 0 or ", rows, " positions (one per key); got ",
        cross_kv.values.rows, " values and ", positions, " positions"));
  }
  if (rows <= max_tokens) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("memory: expected at most ", max_tokens, " rows; got ", rows));
}

absl::Status CheckSizes(const PackedBatch& batch, int64_t max_tokens) {
  const absl::Span<const int32_t> bounds = batch.cu_seqlens;
  if (bounds.empty() || bounds.front() != 0 || !std::is_sorted(bounds.begin(), bounds.end())) {
    return absl::InvalidArgumentError("cu_seqlens: expected a non-decreasing list from 0");
  }
  const std::pair<const char*, size_t> lists[] = {{"bias", batch.bias.size()},
                                                  {"head_gates", batch.head_gates.size()},
                                                  {"states", batch.states.size()},
                                                  {"memory", batch.cross_kv.size()}};
  for (const auto& [name, size] : lists) {
    if (size == 0 || static_cast<int64_t>(size) == batch.sequences()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected ", batch.sequences(), " (one per sequence); got ", size));
  }
  const absl::Span<const int32_t> rows = batch.selected_rows;
  if (!rows.empty() &&
      (rows.front() < 0 || rows.back() >= batch.tokens() ||
       std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) != rows.end())) {
    return absl::InvalidArgumentError(
        absl::StrCat("selected_rows: expected strictly ascending rows in 0..", batch.tokens() - 1));
  }
  if (batch.tokens() > max_tokens) {
    return absl::ResourceExhaustedError(
        absl::StrCat("batch: expected at most ", max_tokens, " tokens; got ", batch.tokens()));
  }
  RETURN_IF_ERROR(CheckPositions(batch, max_tokens));
  for (const CrossKv& cross_kv : batch.cross_kv) {
    RETURN_IF_ERROR(CheckCrossKv(cross_kv, max_tokens));
  }
  return absl::OkStatus();
}

// Checks that the tokens of each sequence span at most `most` positions. If `most` is 0, they may
// span any number.
absl::Status CheckMixedPositions(const PackedBatch& batch, int64_t most) {
  for (int64_t i = 0; most > 0 && i < batch.sequences(); ++i) {
    const int64_t begin = batch.cu_seqlens[i], end = batch.cu_seqlens[i + 1];
    if (begin == end) continue;
    const int64_t reach = batch.positions.empty()
                              ? end - begin
                              : batch.positions[end - 1] - batch.positions[begin] + 1;
    if (reach <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("batch: expected sequences of at most ", most, " positions; got ", reach));
  }
  return absl::OkStatus();
}

// Checks that the model supports the batch's optional inputs.
absl::Status CheckFits(const PackedBatch& batch, const ModelDescription& model) {
  if (!batch.bias.empty() && !ScoresPairs(model.layer.attention.kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat("bias: not supported by this model: ", Name(model.layer.attention.kind),
                     " attention has no score per query and key"));
  }
  if (!batch.states.empty()) {
    if (const std::string why = WhyNotInChunks(model); !why.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("states: not supported by this model: ", why));
    }
  }
  return CheckMixedPositions(batch, model.layer.attention.linformer.positions);
}

}  // namespace

absl::Status CheckBatch(const PackedBatch& batch, const ModelDescription& model,
                        int64_t max_tokens) {
  RETURN_IF_ERROR(CheckSizes(batch, max_tokens));
  return CheckFits(batch, model);
}

}  // namespace attendant
