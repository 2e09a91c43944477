// ByteTrie, a set of numbered byte strings, to find those that continue a text.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant::text {

// Immutable; thread-safe. Nodes are ordered by depth, so that the children of each are adjacent,
// and building takes as long as sorting the strings.
class ByteTrie {
 public:
  using Node = uint32_t;
  static constexpr Node kNone = 0xFFFFFFFF;
  static constexpr uint32_t kNoValue = 0xFFFFFFFF;

  ByteTrie() : ByteTrie(std::vector<std::pair<std::string, uint32_t>>()) {}
  // Of equal strings, the last one counts.
  explicit ByteTrie(std::vector<std::pair<std::string, uint32_t>> entries);

  Node root() const { return 0; }
  uint32_t size() const { return size_; }  // distinct strings

  // Returns the node reached by `byte`, or kNone.
  Node Child(Node node, unsigned char byte) const {
    if (node == 0) return root_[byte];
    const State& state = states_[node];
    // Most nodes have few children.
    if (state.children <= kFew) {
      for (Node child = state.first; child < state.first + state.children; ++child) {
        if (labels_[child] == byte) return child;
      }
      return kNone;
    }
    const void* found = std::memchr(labels_.data() + state.first, byte, state.children);
    return found == nullptr
               ? kNone
               : static_cast<Node>(static_cast<const unsigned char*>(found) - labels_.data());
  }

  // Returns the number of the string that ends at a node, or kNoValue.
  uint32_t Value(Node node) const { return states_[node].value; }

  Node Walk(Node node, absl::string_view bytes) const {
    for (size_t i = 0; i < bytes.size() && node != kNone; ++i) {
      node = Child(node, static_cast<unsigned char>(bytes[i]));
    }
    return node;
  }

  // Returns the string with a number; empty if there is none.
  std::string Text(uint32_t value) const;

  // Returns the number of a string, or kNoValue.
  uint32_t Find(absl::string_view bytes) const {
    const Node node = Walk(root(), bytes);
    return node == kNone ? kNoValue : Value(node);
  }

 private:
  struct State {
    uint32_t first = 0;  // child
    uint32_t value = kNoValue;
    uint16_t children = 0;
  };

  static constexpr uint16_t kFew = 4;

  Node Parent(Node node) const;

  std::vector<State> states_;
  std::array<Node, 256> root_;  // the root's children
  uint32_t size_ = 0;
  std::vector<unsigned char> labels_;            // the byte that leads from a node's parent to it
  std::vector<std::pair<uint32_t, Node>> ends_;  // each number with its string's end, ascending
};

}  // namespace attendant::text
