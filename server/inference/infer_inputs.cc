#include "server/inference/infer_inputs.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/inference/datatypes.h"
#include "server/inference/infer_parameters.h"
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

// The elements of `list` as elements of the type, which may be narrower.
template <typename Element, typename List>
absl::StatusOr<Payload> Pack(const std::string& name, const List& list) {
  std::string bytes(static_cast<size_t>(list.size()) * sizeof(Element), '\0');
  char* to = bytes.data();
  for (int i = 0; i < list.size(); ++i) {
    const auto element = static_cast<Element>(list[i]);
    if constexpr (std::numeric_limits<Element>::is_integer) {
      if (static_cast<int64_t>(element) != static_cast<int64_t>(list[i])) {
        return InvalidField(absl::StrCat(name, ".contents[", i, "]"), "a value of its datatype",
                            absl::StrCat(list[i]));
      }
    }
    std::memcpy(to, &element, sizeof(element));
    to += sizeof(element);
  }
  return PayloadOf(bytes);
}

int64_t ElementsIn(const InferTensorContents& contents) {
  return int64_t{contents.bool_contents_size()} + contents.int_contents_size() +
         contents.int64_contents_size() + contents.uint_contents_size() +
         contents.uint64_contents_size() + contents.fp32_contents_size() +
         contents.fp64_contents_size() + contents.bytes_contents_size();
}

// The list of `contents` in which the elements of a datatype are, packed.
absl::StatusOr<Payload> PackContents(const Tensor& tensor, v1::DataType type) {
  const std::string& name = tensor.name();
  const InferTensorContents& contents = tensor.contents();
  switch (type) {
    case v1::BOOL:
      return Pack<uint8_t>(name, contents.bool_contents());
    case v1::INT8:
      return Pack<int8_t>(name, contents.int_contents());
    case v1::INT16:
      return Pack<int16_t>(name, contents.int_contents());
    case v1::INT32:
      return Pack<int32_t>(name, contents.int_contents());
    case v1::INT64:
      return Pack<int64_t>(name, contents.int64_contents());
    case v1::UINT8:
      return Pack<uint8_t>(name, contents.uint_contents());
    case v1::UINT16:
      return Pack<uint16_t>(name, contents.uint_contents());
    case v1::UINT32:
      return Pack<uint32_t>(name, contents.uint_contents());
    case v1::UINT64:
      return Pack<uint64_t>(name, contents.uint64_contents());
    case v1::FLOAT32:
      return Pack<float>(name, contents.fp32_contents());
    default:
      return InvalidField(
          name + ".contents",
          absl::StrCat("raw_input_contents, as there is no list of ", tensor.datatype()), "a list");
  }
}

absl::StatusOr<Payload> ReadContents(const Tensor& tensor, v1::DataType type) {
  absl::StatusOr<Payload> packed = PackContents(tensor, type);
  if (!packed.ok()) return packed;
  const int64_t came = ElementsIn(tensor.contents());
  if (came * ByteWidth(*FromWire(type)) == packed->size()) return packed;
  return InvalidField(tensor.name() + ".contents",
                      absl::StrCat("all elements in the list of ", tensor.datatype()),
                      absl::StrCat(came, " in others too"));
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
    if (!tensor.has_contents()) continue;
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
      absl::StatusOr<Payload> data = ReadContents(tensor, datatype->wire);
      if (!data.ok()) return data.status();
      input.data = *std::move(data);
    }
    inputs.emplace(tensor.name(), std::move(input));
  }
  return inputs;
}

}  // namespace attendant::server
