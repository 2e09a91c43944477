#include "server/repository/probe_model.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/layers/encoder.h"

namespace attendant::server {
namespace {

constexpr int64_t kLongest = 8;  // tokens of the sequence

using Rows = absl::StatusOr<std::vector<float>>;

void FillRow(int64_t seed, MatrixView<float> rows, int64_t row) {
  for (int64_t c = 0; c < rows.cols; ++c) {
    rows.row(row)[c] = static_cast<float>((seed * 31 + c * 101) % 257 - 128) / 64.0f;
  }
}

// Returns the rows of a sequence of `length` tokens after one layer, between two other sequences:
// one of `neighbor` tokens and one half as long, or none.
Rows Compute(EncoderRun& run, int64_t layer, int64_t length, int64_t neighbor) {
  const MatrixView<float> input = run.input();
  std::vector<int32_t> cu_seqlens = {0};
  const auto add = [&](int64_t seed, int64_t tokens) {
    if (tokens == 0) return;
    const int64_t first = cu_seqlens.back();
    for (int64_t i = 0; i < tokens; ++i) FillRow(seed + i, input, first + i);
    cu_seqlens.push_back(static_cast<int32_t>(first + tokens));
  };
  add(1000, neighbor);
  const int64_t first = cu_seqlens.back();
  add(0, length);
  add(2000, (neighbor + 1) / 2);
  RunObserver no_observer;
  ASSIGN_OR_RETURN(const auto result,
                   run.Encode(layer, 1, {.cu_seqlens = cu_seqlens, .bias = {}}, no_observer));
  std::vector<float> rows;
  for (int64_t r = 0; r < length; ++r) {
    rows.insert(rows.end(), result.row(first + r), result.row(first + r) + result.cols);
  }
  return rows;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

absl::Status ProbeModel(const ServedModel& model) {
  const ModelDescription& description = model.encoder->description();
  if (description.layer.needs_cross_kv()) return absl::OkStatus();
  EncoderRun& all = model.runs->front();
  int64_t length = std::min(kLongest, std::max<int64_t>(1, all.input().rows / 3));
  const int64_t longest = description.layer.attention.linformer.positions;
  if (longest > 0) length = std::min(length, longest);
  const int64_t neighbor = all.input().rows >= 3 * length ? length : 0;
  EncoderRun one(model.encoder, 3 * length, 1);
  const struct {
    const char* name;
    EncoderRun& run;
    int64_t neighbor;
  } ways[] = {{"again", all, 0},
              {"with others", all, neighbor},
              {"on one thread", one, 0},
              {"with others on one thread", one, neighbor}};
  for (int64_t layer = 0; layer < description.layers; ++layer) {
    ASSIGN_OR_RETURN(const auto expected, Compute(all, layer, length, 0));
    for (const auto& [name, run, neighbors] : ways) {
      ASSIGN_OR_RETURN(const auto rows, Compute(run, layer, length, neighbors));
      if (SameBits(expected, rows)) continue;
      return absl::InternalError(absl::StrCat("layer ", layer, " of ", description.layers,
                                              " returns different bits when computed ", name));
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
