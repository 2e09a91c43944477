#include "server/cross_kv/stream_sequence.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/model/model_facts.h"
#include "server/models/sequence_state.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

std::string Describe(const LayerSpan& span) {
  return absl::StrCat("layers ", span.first_layer, "..", span.first_layer + span.layers - 1, " of ",
                      span.model->name);
}

}  // namespace

absl::Status StreamSequence::Admit(const LayerSpan& span, CrossKvStore& store) {
  if (begun_) {
    if (span == span_) return absl::OkStatus();
    return InvalidField("sequence", absl::StrCat("that of its parts before, ", Describe(span_)),
                        Describe(span));
  }
  const ModelDescription& model = span.model->encoder->description();
  room_.reset();
  absl::StatusOr<std::unique_ptr<HeldBytes>> room =
      store.Hold(SequenceStateBytes(model, span.layers));
  if (!room.ok()) return room.status();
  const int64_t size = span.layers * LayerStateSize(model.layer);
  try {
    before_ = AlignedBuffer<float>(size);
    after_ = AlignedBuffer<float>(size);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a sequence's state of ", 2 * size, " floats"));
  }
  room_ = *std::move(room);
  span_ = span;
  return absl::OkStatus();
}

LinearState StreamSequence::state() { return {begun_ ? before_.data() : nullptr, after_.data()}; }

void StreamSequence::Keep(int64_t tokens) {
  std::swap(before_, after_);
  tokens_ += tokens;
  begun_ = true;
}

void StreamSequence::Release() {
  before_ = AlignedBuffer<float>();
  after_ = AlignedBuffer<float>();
  room_.reset();
}

}  // namespace attendant::server
