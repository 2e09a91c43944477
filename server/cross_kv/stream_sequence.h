// A sequence that comes in chunks, each an item of an EncodeStream.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/attention/attention.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/models/layer_span.h"

namespace attendant::server {

// Tokens of a chunk.
struct ChunkTokens {
  int64_t all = 0;
  int64_t counted = 0;  // of them, those that default positions count
};

// The state that the chunks so far have left behind. One chunk uses it at a time.
class StreamSequence {
 public:
  // `number` is the client's name for it.
  explicit StreamSequence(uint64_t number) : number_(number) {}

  uint64_t number() const { return number_; }
  // True once a chunk has been computed.
  bool begun() const { return begun_; }
  // The tokens of the chunks that have been computed.
  const ChunkTokens& tokens() const { return tokens_; }

  // The version of the model that has computed its chunks; null before the first.
  // FAILED_PRECONDITION: it is retired.
  absl::StatusOr<std::shared_ptr<const ServedModel>> model() const;

  // To be called with the layers of each chunk before it is computed. INVALID_ARGUMENT: they differ
  // from those of the first chunk. RESOURCE_EXHAUSTED: there is no room for the state.
  absl::Status Admit(const LayerSpan& span, CrossKvStore& store);

  // The state for the chunk that is computed now, of the layers of its span.
  LinearState state();

  // Makes the chunk that was computed last, which has these tokens, belong to the sequence. Without
  // this call the sequence stays as it was.
  void Keep(const ChunkTokens& tokens);

  // Returns the error of a chunk that has not become part of the sequence, with the position to go
  // on from.
  absl::Status WithPosition(const absl::Status& status) const;

  // Frees the state and its room even if others still hold the object. No chunk follows.
  void Release();

 private:
  const uint64_t number_;
  bool begun_ = false;
  ChunkTokens tokens_;
  // The layers of every chunk, fixed by the first. A retired model is not kept by its sequences.
  std::weak_ptr<const ServedModel> model_;
  std::shared_ptr<const std::atomic<bool>> retired_;  // of the model, which is in use meanwhile
  std::string model_name_;
  int64_t first_layer_ = 0;
  int64_t layers_ = 0;
  std::unique_ptr<HeldBytes> room_;
  AlignedBuffer<float> before_, after_;
};

}  // namespace attendant::server
