#include "client/load_requests/sequences.h"

#include <algorithm>
#include <utility>

namespace attendant::client {

Sequences Sequences::OfLengths(std::vector<int64_t> lengths) {
  Sequences sequences;
  sequences.lengths_ = std::move(lengths);
  return sequences;
}

Sequences Sequences::OfIds(std::vector<std::vector<int64_t>> ids) {
  Sequences sequences;
  for (const std::vector<int64_t>& one : ids) {
    sequences.lengths_.push_back(static_cast<int64_t>(one.size()));
  }
  sequences.ids_ = std::move(ids);
  return sequences;
}

int64_t Sequences::longest() const {
  return drawn_ ? drawn_->longest() : *std::max_element(lengths_.begin(), lengths_.end());
}

int64_t Sequences::Length(size_t i, std::mt19937_64& random) const {
  return drawn_ ? drawn_->Draw(random) : lengths_[i];
}

}  // namespace attendant::client
