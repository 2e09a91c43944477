// Tables of the sines and cosines of positions, which no file has to hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "engine/model/weight_source.h"

namespace attendant {

enum class Sinusoids {
  kNone,
  // Column j of position p is the sine for even j, else the cosine, of p / 10000^(2 floor(j / 2) /
  // E) (Vaswani et al. 2017, section 3.5).
  kInterleaved,
  kHalves,       // all sines, then all cosines, of p / 10000^(i / (E / 2 - 1)) (tensor2tensor)
  kHalvesOfAll,  // all sines, then all cosines, of p / 10000^(2 i / E) (Marian)
};

// A table of sinusoids, [positions, width].
struct SinusoidTable {
  Sinusoids kind = Sinusoids::kNone;
  int64_t positions = 0;
  int64_t width = 0;                               // even for halves, and from 4 on for kHalves
  std::optional<int64_t> zero_row = std::nullopt;  // the position with a row of zeros
};

// Writes the table to `target`, which has room for exactly its elements, row-major.
void FillSinusoids(const SinusoidTable& table, absl::Span<float> target);

// Returns `weights` with the table as the tensor `name`, computed at each read. Without a kind of
// sinusoids, returns `weights` as they are.
std::unique_ptr<WeightSource> WithSinusoids(const std::string& name, const SinusoidTable& table,
                                            std::unique_ptr<WeightSource> weights);

}  // namespace attendant
