// Sequences, the lengths or the token ids of which a load test makes its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "client/load_requests/length_distribution.h"

namespace attendant::client {

// Immutable.
class Sequences {
 public:
  // Lengths that are drawn, as many as are wanted.
  Sequences(LengthDistribution lengths)  // NOLINT(google-explicit-constructor)
      : drawn_(lengths) {}
  // Lengths and ids of a file, in its order; neither may be empty, nor any sequence of them.
  static Sequences OfLengths(std::vector<int64_t> lengths);
  static Sequences OfIds(std::vector<std::vector<int64_t>> ids);

  // Returns how many there are; 0 if they are drawn.
  size_t count() const { return ids_.empty() ? lengths_.size() : ids_.size(); }
  int64_t longest() const;
  // Returns the length of the i-th sequence, which is below count() unless that is 0.
  int64_t Length(size_t i, std::mt19937_64& random) const;
  // Returns the ids of all sequences; empty if only their lengths are known.
  const std::vector<std::vector<int64_t>>& ids() const { return ids_; }

 private:
  Sequences() = default;

  std::optional<LengthDistribution> drawn_;
  std::vector<int64_t> lengths_;
  std::vector<std::vector<int64_t>> ids_;
};

}  // namespace attendant::client
