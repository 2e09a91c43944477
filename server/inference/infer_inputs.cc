#include "server/inference/infer_inputs.h"

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/inference/datatypes.h"
#include "server/inference/infer_parameters.h"
#include "server/inference/infer_value.h"
#include "server/tensors/status_mapping.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {
namespace {

using inference::InferTensorContents;
using Tensor = inference::ModelInferRequest::InferInputTensor;

Payload PayloadOf(const std::string& bytes) {
  auto message = std::make_shared<MessageSlices>();
  message->emplace_back(bytes);
  return Payload(std::move(message), 0, static_cast<int64_t>(bytes.size()));
}

int64_t ElementsIn(const InferTensorContents& contents) {
  return int64_t{contents.bool_contents_size()} + contents.int_contents_size() +
         contents.int64_contents_size() + contents.uint_contents_size() +
         contents.uint64_contents_size() + contents.fp32_contents_size() +
         contents.fp64_contents_size() + contents.bytes_contents_size();
}

// The elements of a tensor, taken from lists of any type.
class Packer {
 public:
  Packer(const std::string& name, const Datatype& datatype)
      : name_(name),
        datatype_(datatype),
        write_(WriterOf(datatype.wire)),
        width_(static_cast<size_t>(ByteWidth(*FromWire(datatype.wire)))) {}

  // `value` makes an InferValue of an element.
  template <typename List, typename Value>
  absl::Status Take(const List& list, Value value) {
    std::string packed(static_cast<size_t>(list.size()) * width_, '\0');
    for (int i = 0; i < list.size(); ++i) {
      const InferValue element = value(list[i]);
      if (write_(element, packed.data() + static_cast<size_t>(i) * width_)) continue;
      return InvalidField(absl::StrCat(name_, ".contents[", i, "]"),
                          absl::StrCat("a value of ", datatype_.name), Describe(element));
    }
    if (!packed.empty()) bytes_ = std::move(packed);
    return absl::OkStatus();
  }

  Payload payload() const { return PayloadOf(bytes_); }

 private:
  const std::string& name_;
  const Datatype& datatype_;
  const ElementWriter write_;
  const size_t width_;
  std::string bytes_;
};

absl::StatusOr<Payload> ReadContents(const Tensor& tensor, const Datatype& datatype) {
  const std::string field = tensor.name() + ".contents";
  if (WriterOf(datatype.wire) == nullptr) {
    return InvalidField(field,
                        absl::StrCat("raw_input_contents, as there is no list of ", datatype.name),
                        "a list");
  }
  const InferTensorContents& contents = tensor.contents();
  if (contents.bytes_contents_size() > 0) return InvalidField(field, "numbers", "bytes_contents");
  Packer packer(tensor.name(), datatype);
  absl::Status status = packer.Take(contents.bool_contents(), InferValue::OfFlag);
  if (status.ok()) status = packer.Take(contents.int_contents(), InferValue::OfSigned);
  if (status.ok()) status = packer.Take(contents.int64_contents(), InferValue::OfSigned);
  if (status.ok()) status = packer.Take(contents.uint_contents(), InferValue::OfUnsigned);
  if (status.ok()) status = packer.Take(contents.uint64_contents(), InferValue::OfUnsigned);
  if (status.ok()) status = packer.Take(contents.fp32_contents(), InferValue::OfFloat);
  if (status.ok()) status = packer.Take(contents.fp64_contents(), InferValue::OfFloat);
  if (!status.ok()) return status;
  Payload payload = packer.payload();
  const int64_t came = ElementsIn(contents);
  if (came * ByteWidth(*FromWire(datatype.wire)) == payload.size()) return payload;
  return InvalidField(field, "all elements in one list", absl::StrCat(came, " in several"));
}

absl::Status CheckNames(const inference::ModelInferRequest& request,
                        const std::vector<std::string>& accepted) {
  std::set<std::string> seen;
  for (const Tensor& tensor : request.inputs()) {
    if (!absl::c_linear_search(accepted, tensor.name())) {
      return InvalidField("inputs", absl::StrCat("names of ", absl::StrJoin(accepted, ", ")),
                          Quote(tensor.name()));
    }
    if (!seen.insert(tensor.name()).second) {
      return InvalidField("inputs", "each name once", absl::StrCat(tensor.name(), " again"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSources(const inference::ModelInferRequest& request,
                          const std::vector<Payload>& raw) {
  if (raw.empty()) return absl::OkStatus();
  for (const Tensor& tensor : request.inputs()) {
    if (ElementsIn(tensor.contents()) == 0) continue;
    return InvalidField(tensor.name() + ".contents", "none beside raw_input_contents", "some");
  }
  if (static_cast<int>(raw.size()) == request.inputs_size()) return absl::OkStatus();
  return InvalidField("raw_input_contents",
                      absl::StrCat("one for each of the ", request.inputs_size(), " inputs"),
                      absl::StrCat(raw.size()));
}

}  // namespace

absl::StatusOr<InferInputs> ReadInputs(const inference::ModelInferRequest& request,
                                       const std::vector<Payload>& raw,
                                       const std::vector<std::string>& accepted) {
  if (absl::Status status = CheckNames(request, accepted); !status.ok()) return status;
  if (absl::Status status = CheckSources(request, raw); !status.ok()) return status;
  InferInputs inputs;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const Tensor& tensor = request.inputs(i);
    absl::Status status = CheckNotShared(tensor.name(), tensor.parameters());
    if (!status.ok()) return status;
    const Datatype* datatype = FindDatatype(tensor.datatype());
    if (datatype == nullptr) {
      return InvalidField(tensor.name() + ".datatype", absl::StrCat("one of ", DatatypeNames()),
                          Quote(tensor.datatype()));
    }
    InferInput input;
    input.head.set_dtype(datatype->wire);
    *input.head.mutable_shape() = tensor.shape();
    if (!raw.empty()) {
      input.data = raw[static_cast<size_t>(i)];
    } else {
      absl::StatusOr<Payload> data = ReadContents(tensor, *datatype);
      if (!data.ok()) return data.status();
      input.data = *std::move(data);
    }
    inputs.emplace(tensor.name(), std::move(input));
  }
  return inputs;
}

}  // namespace attendant::server
