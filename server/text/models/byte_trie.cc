#include "server/text/models/byte_trie.h"

#include <algorithm>

namespace attendant::text {

ByteTrie::ByteTrie(std::vector<std::pair<std::string, uint32_t>> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // The entries [begin, end) share their first bytes, which lead to the node of the same index.
  struct Range {
    size_t begin, end;
  };
  std::vector<Range> ranges = {{0, entries.size()}};
  states_.resize(1);
  labels_.resize(1);
  size_t level_end = 1;  // the first node of the next depth
  for (size_t node = 0, depth = 0; node < ranges.size(); ++node) {
    if (node == level_end) {
      level_end = ranges.size();
      ++depth;
    }
    auto [at, end] = ranges[node];
    for (; at < end && entries[at].first.size() == depth; ++at) {
      states_[node].value = entries[at].second;
    }
    if (states_[node].value != kNoValue) ++size_;
    states_[node].first = static_cast<uint32_t>(ranges.size());
    while (at < end) {
      const char label = entries[at].first[depth];
      size_t next = at + 1;
      while (next < end && entries[next].first[depth] == label) ++next;
      ranges.push_back({at, next});
      labels_.push_back(static_cast<unsigned char>(label));
      states_.emplace_back();
      ++states_[node].children;
      at = next;
    }
  }
  root_.fill(kNone);
  for (Node child = states_[0].first; child < states_[0].first + states_[0].children; ++child) {
    root_[labels_[child]] = child;
  }
}

}  // namespace attendant::text
