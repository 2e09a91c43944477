#include "server/cross_kv/stream_sequence.h"

#include <new>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/model/model_facts.h"
#include "server/models/model_lookup.h"
#include "server/models/sequence_state.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

std::string DescribeLayers(int64_t first, int64_t layers, const std::string& model) {
  return absl::StrCat("layers ", first, "..", first + layers - 1, " of ", model);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ServedModel>> StreamSequence::model() const {
  if (!begun_) return nullptr;
  std::shared_ptr<const ServedModel> model = model_.lock();
  if (model == nullptr || model->retired->load()) return RetiredModel("sequence", model_name_);
  return model;
}

absl::Status StreamSequence::Admit(const LayerSpan& span, CrossKvStore& store) {
  if (begun_) {
    if (span.model == model_.lock() && span.first_layer == first_layer_ && span.layers == layers_) {
      return absl::OkStatus();
    }
    return InvalidField("sequence",
                        absl::StrCat(DescribeLayers(first_layer_, layers_, model_name_),
                                     " (as in its earlier chunks)"),
                        DescribeLayers(span.first_layer, span.layers, span.model->name));
  }
  const ModelDescription& model = span.model->encoder->description();
  room_.reset();
  ASSIGN_OR_RETURN(std::unique_ptr<HeldBytes> room,
                   store.Hold(SequenceStateBytes(model, span.layers)));
  const int64_t size = span.layers * LayerStateSize(model.layer);
  try {
    before_ = AlignedBuffer<float>(size);
    after_ = AlignedBuffer<float>(size);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", 2 * size, " floats for the sequence's state"));
  }
  room_ = std::move(room);
  model_ = span.model;
  retired_ = span.model->retired;
  model_name_ = span.model->name;
  first_layer_ = span.first_layer;
  layers_ = span.layers;
  return absl::OkStatus();
}

LinearState StreamSequence::state() { return {begun_ ? before_.data() : nullptr, after_.data()}; }

void StreamSequence::Keep(const ChunkTokens& tokens) {
  std::swap(before_, after_);
  tokens_.all += tokens.all;
  tokens_.counted += tokens.counted;
  begun_ = true;
}

absl::Status StreamSequence::WithPosition(const absl::Status& status) const {
  absl::Status error(status.code(), absl::StrCat(status.message(), "; sequence ", number_,
                                                 " is unchanged, at ", tokens_.all, " tokens"));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { error.SetPayload(type, payload); });
  return error;
}

void StreamSequence::Release() {
  before_ = AlignedBuffer<float>();
  after_ = AlignedBuffer<float>();
  room_.reset();
  retired_.reset();
}

}  // namespace attendant::server
