// StreamSequence, a sequence that arrives in chunks, each an item of an EncodeStream.
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
#include "server/models/served_model.h"

namespace attendant::server {

// Tokens of a chunk.
struct ChunkTokens {
  int64_t all = 0;
  int64_t counted = 0;  // those that count in default positions
};

// The state after the chunks so far. Used by one chunk at a time.
class StreamSequence {
 public:
  // `number` is the client's name for it.
  explicit StreamSequence(uint64_t number) : number_(number) {}

  uint64_t number() const { return number_; }
  // Returns true once a chunk has been computed.
  bool begun() const { return begun_; }
  // Returns the tokens of all computed chunks.
  const ChunkTokens& tokens() const { return tokens_; }

  // Returns the version of the model that computes its chunks; null before the first. Returns
  // FAILED_PRECONDITION if it has been retired.
  absl::StatusOr<std::shared_ptr<const ServedModel>> model() const;

  // Call with the layers of each chunk before computing it. Returns INVALID_ARGUMENT if they differ
  // from the first chunk's, and RESOURCE_EXHAUSTED if there is no memory for the state.
  absl::Status Admit(const LayerSpan& span, CrossKvStore& store);

  // Returns the state for the current chunk, for the layers of its span.
  LinearState state();

  // Adds the chunk computed last, with these tokens, to the sequence. Without this call, the
  // sequence is unchanged.
  void Keep(const ChunkTokens& tokens);

  // Returns the error of a chunk that was not added to the sequence, with the position at which to
  // continue.
  absl::Status WithPosition(const absl::Status& status) const;

  // Frees the state and its memory even if others still reference the object. No chunk may follow.
  void Release();

 private:
  const uint64_t number_;
  bool begun_ = false;
  ChunkTokens tokens_;
  // The layers of every chunk, set by the first. Sequences do not keep retired models alive.
  std::weak_ptr<const ServedModel> model_;
  std::shared_ptr<const std::atomic<bool>> retired_;  // of the model
  std::string model_name_;
  int64_t first_layer_ = 0;
  int64_t layers_ = 0;
  std::unique_ptr<HeldBytes> room_;
  AlignedBuffer<float> before_, after_;
};

}  // namespace attendant::server
