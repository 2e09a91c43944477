// A sequence that comes in parts, each an item of an EncodeStream.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/attention/attention.h"
#include "server/cross_kv/memory_store.h"
#include "server/models/layer_span.h"

namespace attendant::server {

// What the parts so far have left behind. Used by one part after the other, never by two at a time.
class StreamSequence {
 public:
  // `number` is its client's.
  explicit StreamSequence(uint64_t number) : number_(number) {}

  uint64_t number() const { return number_; }
  // A part has been computed.
  bool begun() const { return begun_; }
  // Of the parts that have been computed.
  int64_t tokens() const { return tokens_; }

  // To be called with the layers of each part before it is computed. INVALID_ARGUMENT: others than
  // those of the parts before. RESOURCE_EXHAUSTED: no room for what the first part
  // leaves behind.
  absl::Status Admit(const LayerSpan& span, MemoryStore& memories);

  // What the part that is computed now finds and leaves behind; its layers are those of the part.
  LinearState state();

  // The part that was computed last, of so many tokens, belongs to the sequence from now on.
  // Without this it never did.
  void Keep(int64_t tokens);

  // Frees what is kept, whoever still holds the object. No part follows.
  void LetGo();

 private:
  const uint64_t number_;
  bool begun_ = false;
  int64_t tokens_ = 0;
  LayerSpan span_;  // of the parts: fixed by the first
  std::unique_ptr<HeldBytes> room_;
  AlignedBuffer<float> before_, after_;
};

}  // namespace attendant::server
