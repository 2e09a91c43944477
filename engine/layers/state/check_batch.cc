#include "engine/layers/state/check_batch.h"

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/model/model_facts.h"

namespace attendant {
namespace {

absl::Status CheckPositions(const PackedBatch& batch, int64_t max_tokens) {
  if (batch.positions.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(batch.positions.size()) != batch.tokens()) {
    return absl::InvalidArgumentError(absl::StrCat("positions: expected one for each of ",
                                                   batch.tokens(), " tokens, got ",
                                                   batch.positions.size()));
  }
  for (const int32_t position : batch.positions) {
    if (position >= 0 && position < max_tokens) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("positions: expected 0 to ", max_tokens - 1, ", got ", position));
  }
  return absl::OkStatus();
}

absl::Status CheckCrossKv(const PackedBatch& batch, int64_t max_tokens) {
  if (batch.cross_kv.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(batch.cross_kv.size()) != batch.sequences()) {
    return absl::InvalidArgumentError(absl::StrCat("memory: expected one for each of ",
                                                   batch.sequences(), " sequences, got ",
                                                   batch.cross_kv.size()));
  }
  for (const CrossKv& cross_kv : batch.cross_kv) {
    const int64_t rows = cross_kv.keys.rows;
    const int64_t positions = static_cast<int64_t>(cross_kv.positions.size());
    if (cross_kv.values.rows != rows || (positions != rows && positions != 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("memory: expected as many values, and positions if any, as the ", rows,
                       " keys, got ", cross_kv.values.rows, " and ", positions));
    }
    if (rows > max_tokens) {
      return absl::ResourceExhaustedError(
          absl::StrCat("memory: expected at most ", max_tokens, " rows, got ", rows));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const PackedBatch& batch, int64_t max_tokens) {
  const absl::Span<const int32_t> bounds = batch.cu_seqlens;
  if (bounds.empty() || bounds.front() != 0 || !std::is_sorted(bounds.begin(), bounds.end())) {
    return absl::InvalidArgumentError("cu_seqlens: expected to ascend from 0");
  }
  if (!batch.bias.empty() && static_cast<int64_t>(batch.bias.size()) != batch.sequences()) {
    return absl::InvalidArgumentError(absl::StrCat("bias: expected one for each of ",
                                                   batch.sequences(), " sequences, got ",
                                                   batch.bias.size()));
  }
  if (!batch.head_gates.empty() &&
      static_cast<int64_t>(batch.head_gates.size()) != batch.sequences()) {
    return absl::InvalidArgumentError(absl::StrCat("head_gates: expected some for each of ",
                                                   batch.sequences(), " sequences, got ",
                                                   batch.head_gates.size()));
  }
  if (!batch.states.empty() && static_cast<int64_t>(batch.states.size()) != batch.sequences()) {
    return absl::InvalidArgumentError(absl::StrCat("states: expected one for each of ",
                                                   batch.sequences(), " sequences, got ",
                                                   batch.states.size()));
  }
  const absl::Span<const int32_t> rows = batch.wanted_rows;
  if (!rows.empty() &&
      (rows.front() < 0 || rows.back() >= batch.tokens() ||
       std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) != rows.end())) {
    return absl::InvalidArgumentError(absl::StrCat("wanted_rows: expected ascending rows of the ",
                                                   batch.tokens(), " of the batch"));
  }
  if (batch.tokens() > max_tokens) {
    return absl::ResourceExhaustedError(
        absl::StrCat("batch: expected at most ", max_tokens, " tokens, got ", batch.tokens()));
  }
  absl::Status status = CheckPositions(batch, max_tokens);
  status.Update(CheckCrossKv(batch, max_tokens));
  return status;
}

// Checks that every token is among the first `most` positions, counted from the first token of its
// sequence; 0: any number.
absl::Status CheckMixedPositions(const PackedBatch& batch, int64_t most) {
  for (int64_t i = 0; most > 0 && i < batch.sequences(); ++i) {
    const int64_t begin = batch.cu_seqlens[i], end = batch.cu_seqlens[i + 1];
    if (begin == end) continue;
    const int64_t reach = batch.positions.empty()
                              ? end - begin
                              : batch.positions[end - 1] - batch.positions[begin] + 1;
    if (reach <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("batch: expected sequences of at most ", most, " positions, got ", reach));
  }
  return absl::OkStatus();
}

// Checks that the model can take what the batch has.
absl::Status CheckFits(const PackedBatch& batch, const ModelDescription& model) {
  if (!batch.bias.empty() && !ScoresPairs(model.layer.attention.kind)) {
    return absl::InvalidArgumentError(
        "bias: expected none, because the attention has no scores of pairs to add it to");
  }
  if (!batch.states.empty()) {
    if (const std::string why = WhyNotInChunks(model); !why.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("states: expected none, because of this model, ", why));
    }
  }
  return CheckMixedPositions(batch, model.layer.attention.linformer.positions);
}

}  // namespace

absl::Status CheckBatch(const PackedBatch& batch, const ModelDescription& model,
                        int64_t max_tokens) {
  const absl::Status status = CheckSizes(batch, max_tokens);
  return status.ok() ? CheckFits(batch, model) : status;
}

}  // namespace attendant
