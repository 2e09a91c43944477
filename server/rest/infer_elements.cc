#include "server/rest/infer_elements.h"

#include <cstdlib>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"
#include "engine/base/data_type.h"
#include "server/tensors/status_mapping.h"
#include "server/tensors/tensor_check.h"
#include "server/wire/request_codec.h"

namespace attendant::server {

void InferElements::PackAs(const Datatype& type, int64_t most) {
  *this = {};
  type_ = &type;
  write_ = WriterOf(type.wire);
  width_ = ByteWidth(*FromWire(type.wire));
  if (most == 0) return;
  const auto bytes = static_cast<size_t>(most * width_);
  to_ = static_cast<char*>(std::malloc(bytes));
  if (to_ == nullptr) throw std::bad_alloc();
  end_ = to_ + bytes;
  packed_ = Payload(MessageSlices{grpc::Slice(to_, bytes, std::free)});
}

void InferElements::PackTexts() {
  *this = {};
  is_text_ = true;
}

Payload InferElements::packed() const {
  return is_text_ ? Payload(MessageSlices{grpc::Slice(texts_)}) : packed_;
}

absl::Status InferElements::AddText(const InferValue& value) {
  if (value.kind != InferValue::Kind::kText) {
    return absl::InvalidArgumentError(absl::StrCat("expected a string; got ", Describe(value)));
  }
  if (count_ > kMostRepeatedPayloads) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", kMostRepeatedPayloads, " strings; got more"));
  }
  const auto length = static_cast<uint32_t>(value.text->size());
  for (int shift = 0; shift < 32; shift += 8) {
    texts_.push_back(static_cast<char>(length >> shift & 0xFF));
  }
  texts_.append(*value.text);
  return absl::OkStatus();
}

void InferElements::Enter() {
  if (!counts_.empty()) ++counts_.back();
  counts_.push_back(0);
  if (counts_.size() > sizes_.size()) sizes_.push_back(-1);
  if (leaves_ > 0 && counts_.size() > leaves_) regular_ = false;
}

absl::Status InferElements::Add(const InferValue& value) {
  ++counts_.back();
  ++count_;
  if (leaves_ == 0) leaves_ = counts_.size();
  if (leaves_ != counts_.size() || sizes_.size() > leaves_) regular_ = false;
  if (is_text_) return AddText(value);
  if (to_ == end_) return absl::OkStatus();
  if (!write_(value, to_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a value of ", type_->name, "; got ", Describe(value)));
  }
  to_ += width_;
  return absl::OkStatus();
}

void InferElements::Leave() {
  int64_t& size = sizes_[counts_.size() - 1];
  if (size < 0) size = counts_.back();
  if (size != counts_.back()) regular_ = false;
  counts_.pop_back();
}

absl::Status InferElements::CheckFit(const Shape& shape) const {
  const std::vector<int64_t> sizes(shape.begin(), shape.end());
  if (count_ != ElementsOf(shape)) {
    return absl::InvalidArgumentError(absl::StrCat("expected data with as many elements as shape ",
                                                   ShapeText(sizes), "; got ", count_));
  }
  if (regular_ && (sizes_.size() <= 1 || sizes_ == sizes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected data as a flat list, or nested by shape ", ShapeText(sizes),
                   "; got another nesting"));
}

int64_t ElementsOf(const InferElements::Shape& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size == 0) return 0;
    if (__builtin_mul_overflow(elements, size, &elements)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return elements;
}

}  // namespace attendant::server
