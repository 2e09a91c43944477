#include "server/services/stream_sequence.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/layers/model_facts.h"
#include "server/services/compute_request.h"
#include "server/services/status_mapping.h"

namespace attendant::server {
namespace {

// Of the bookkeeping, at most; so that sequences of narrow models are not free.
constexpr int64_t kBytesOfEach = 512;

std::string SpanText(const std::string& model, int64_t first_layer, int64_t layers) {
  return absl::StrCat("layers ", first_layer, "..", first_layer + layers - 1, " of ", model);
}

// What the parts so far have left behind, and room for what the next one leaves.
int64_t BytesOf(const ModelDescription& model, int64_t layers) {
  return kBytesOfEach +
         2 * layers * LayerStateSize(model.layer) * static_cast<int64_t>(sizeof(float));
}

}  // namespace

int64_t SequenceStateBytes(const ModelDescription& model) {
  return WhyNotInParts(model).empty() ? BytesOf(model, model.layers) : 0;
}

absl::Status StreamSequence::Admit(const ComputeRequest& part, MemoryStore& memories) {
  if (begun_) {
    if (part.model == model_ && part.first_layer == first_layer_ && part.layers == layers_) {
      return absl::OkStatus();
    }
    return Refusal(
        "sequence",
        absl::StrCat("that of its parts before, ", SpanText(model_->name, first_layer_, layers_)),
        SpanText(part.model->name, part.first_layer, part.layers));
  }
  const ModelDescription& model = part.description();
  room_.reset();
  absl::StatusOr<std::unique_ptr<HeldBytes>> room = memories.Hold(BytesOf(model, part.layers));
  if (!room.ok()) return room.status();
  const int64_t size = part.layers * LayerStateSize(model.layer);
  try {
    before_ = AlignedBuffer<float>(size);
    after_ = AlignedBuffer<float>(size);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a sequence's state of ", 2 * size, " floats"));
  }
  room_ = *std::move(room);
  model_ = part.model;
  first_layer_ = part.first_layer;
  layers_ = part.layers;
  return absl::OkStatus();
}

LinearState StreamSequence::state() { return {begun_ ? before_.data() : nullptr, after_.data()}; }

void StreamSequence::Keep(int64_t tokens) {
  std::swap(before_, after_);
  tokens_ += tokens;
  begun_ = true;
}

void StreamSequence::LetGo() {
  before_ = AlignedBuffer<float>();
  after_ = AlignedBuffer<float>();
  room_.reset();
}

}  // namespace attendant::server
