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
  ends_.reserve(entries.size());
  size_t level_end = 1;  // the first node of the next depth
  for (size_t node = 0, depth = 0; node < ranges.size(); ++node) {
    if (node == level_end) {
      level_end = ranges.size();
      ++depth;
    }
    auto [at, end] = ranges[node];
    for (; at < end && entries[at].first.size() == depth; ++at) {
      states_[node].value = entries[at].second;
      ends_.emplace_back(entries[at].second, static_cast<Node>(node));
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
  std::sort(ends_.begin(), ends_.end());
  states_.shrink_to_fit();
  labels_.shrink_to_fit();
}

ByteTrie::Node ByteTrie::Parent(Node node) const {
  // The last node with a first child not after `node`.
  const auto after =
      std::upper_bound(states_.begin(), states_.end(), node,
                       [](Node child, const State& state) { return child < state.first; });
  return static_cast<Node>(after - states_.begin() - 1);
}

std::string ByteTrie::Text(uint32_t value) const {
  const auto end = std::lower_bound(ends_.begin(), ends_.end(), std::pair(value, root()));
  if (end == ends_.end() || end->first != value) return "";
  std::string text;
  for (Node node = end->second; node != root(); node = Parent(node)) {
    text.push_back(static_cast<char>(labels_[node]));
  }
  std::reverse(text.begin(), text.end());
  return text;
}

}  // namespace attendant::text
