#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/data_type.h"
#include "server/inference/datatypes.h"
#include "server/rest/infer_json.h"
#include "server/rest/infer_walk.h"
#include "server/tensors/status_mapping.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {
namespace {

class DataReader final : public InferWalk {
 public:
  explicit DataReader(const RestInferHead& head) : head_(head), packed_(head.inputs.size()) {}

  // Of an input; empty if its elements are not in the JSON.
  const Payload& packed(size_t input) const { return packed_[input]; }

 protected:
  absl::Status OnScalar(At at, const InferValue& value) override {
    if (at != At::kData || write_ == nullptr) return absl::OkStatus();
    if (!write_(value, to_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a value of ", type_->name, "; got ", Describe(value)));
    }
    to_ += width_;
    return absl::OkStatus();
  }

  absl::Status OnEnter(At at) override {
    if (at == At::kInput) ++input_;
    if (at != At::kData || outer() != At::kInput) return absl::OkStatus();
    type_ = FindDatatype(head_.message.inputs(input_).datatype());
    if (type_ == nullptr) {
      write_ = nullptr;
      return absl::OkStatus();
    }
    write_ = WriterOf(type_->wire);
    if (write_ == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected the parameter binary_data_size, as JSON has no ", type_->name, "; got data"));
    }
    width_ = ByteWidth(*FromWire(type_->wire));
    // As many as the first walk has counted in the same text.
    const int64_t bytes = head_.inputs[static_cast<size_t>(input_)].elements * width_;
    if (bytes == 0) return absl::OkStatus();
    to_ = static_cast<char*>(std::malloc(static_cast<size_t>(bytes)));
    if (to_ == nullptr) throw std::bad_alloc();
    auto slices = std::make_shared<MessageSlices>();
    slices->emplace_back(to_, static_cast<size_t>(bytes), std::free);
    packed_[static_cast<size_t>(input_)] = Payload(std::move(slices), 0, bytes);
    return absl::OkStatus();
  }

 private:
  const RestInferHead& head_;
  std::vector<Payload> packed_;
  int input_ = -1;
  const Datatype* type_ = nullptr;
  ElementWriter write_ = nullptr;
  int64_t width_ = 0;
  char* to_ = nullptr;
};

absl::Status CheckBinary(const RestInferHead& head, int64_t behind) {
  int64_t left = behind;
  for (size_t i = 0; i < head.inputs.size(); ++i) {
    const int64_t bytes = head.inputs[i].binary_bytes.value_or(0);
    if (bytes > left) {
      return InvalidField(
          head.message.inputs(static_cast<int>(i)).name() + ".parameters.binary_data_size",
          absl::StrCat("at most the ", left, " bytes that are left behind the JSON"),
          absl::StrCat(bytes));
    }
    left -= bytes;
  }
  if (left == 0) return absl::OkStatus();
  return InvalidField("the body",
                      absl::StrCat(behind - left,
                                   " bytes behind the JSON, as the parameters "
                                   "binary_data_size of the inputs say"),
                      absl::StrCat(behind));
}

}  // namespace

absl::StatusOr<std::vector<Payload>> ReadInferData(const RestInferHead& head,
                                                   const std::shared_ptr<const MessageSlices>& body,
                                                   int64_t json_bytes) {
  int64_t total = 0;
  for (const grpc::Slice& slice : *body) total += static_cast<int64_t>(slice.size());
  absl::Status status = CheckBinary(head, total - json_bytes);
  if (!status.ok()) return status;
  DataReader reader(head);
  status = reader.Walk(*body, json_bytes);
  if (!status.ok()) return status;
  std::vector<Payload> data;
  int64_t at = json_bytes;
  for (size_t i = 0; i < head.inputs.size(); ++i) {
    const std::optional<int64_t>& bytes = head.inputs[i].binary_bytes;
    data.push_back(bytes ? Payload(body, at, *bytes) : reader.packed(i));
    at += bytes.value_or(0);
  }
  return data;
}

}  // namespace attendant::server
