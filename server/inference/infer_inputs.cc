#include "server/inference/infer_inputs.h"

#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attendant/v1/encoder_service.pb.h"
#include "engine/base/status_macros.h"
#include "server/inference/infer_parameters.h"
#include "server/inference/infer_value.h"
#include "server/tensors/status_mapping.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {
namespace {

using inference::InferTensorContents;
using Tensor = inference::ModelInferRequest::InferInputTensor;

int64_t ElementsIn(const InferTensorContents& contents) {
  return int64_t{contents.bool_contents_size()} + contents.int_contents_size() +
         contents.int64_contents_size() + contents.uint_contents_size() +
         contents.uint64_contents_size() + contents.fp32_contents_size() +
         contents.fp64_contents_size() + contents.bytes_contents_size();
}

// The elements of raw BYTES: each is its length, 4 bytes little-endian, and its bytes.
absl::StatusOr<std::vector<Payload>> SplitRaw(const std::string& name, const Payload& raw) {
  constexpr int64_t kLengthBytes = 4;
  std::vector<Payload> texts;
  for (int64_t at = 0; at < raw.size();) {
    const int64_t left = raw.size() - at;
    uint8_t length[kLengthBytes] = {};
    if (left >= kLengthBytes) raw.CopyTo(at, kLengthBytes, length);
    const int64_t bytes = int64_t{length[0]} | int64_t{length[1]} << 8 | int64_t{length[2]} << 16 |
                          int64_t{length[3]} << 24;
    if (left < kLengthBytes || bytes > left - kLengthBytes) {
      return InvalidField(name, "each text as a 4-byte length and its bytes",
                          absl::StrCat(left, " bytes left at text ", texts.size()));
    }
    std::string text(static_cast<size_t>(bytes), '\0');
    raw.CopyTo(at + kLengthBytes, bytes, text.data());
    texts.emplace_back(MessageSlices{grpc::Slice(text)});
    at += kLengthBytes + bytes;
    if (static_cast<int64_t>(texts.size()) > kMostRepeatedPayloads)
      break;  // too many for a request
  }
  return texts;
}

// `raw` is null if the texts are in a list.
absl::StatusOr<std::vector<Payload>> ReadTexts(const Tensor& tensor, const Payload* raw) {
  std::vector<Payload> texts;
  if (raw != nullptr) {
    ASSIGN_OR_RETURN(texts, SplitRaw(tensor.name(), *raw));
  } else {
    const InferTensorContents& contents = tensor.contents();
    if (ElementsIn(contents) > contents.bytes_contents_size()) {
      return InvalidField(tensor.name() + ".contents", "bytes_contents", "numbers");
    }
    for (const std::string& text : contents.bytes_contents()) {
      texts.emplace_back(MessageSlices{grpc::Slice(text)});
    }
  }
  const bool is_column = tensor.shape_size() == 2 && tensor.shape(1) == 1;
  if (tensor.shape_size() != 1 && !is_column) {
    return InvalidField(tensor.name() + ".shape", "[B] or [B, 1]", ShapeText(tensor.shape()));
  }
  const auto count = static_cast<int64_t>(texts.size());
  if (tensor.shape(0) == 0 && count == 0) {
    return InvalidField(tensor.name(), "at least one text", "none");
  }
  if (tensor.shape(0) == count && count <= kMostRepeatedPayloads) return texts;
  return InvalidField(
      tensor.name(),
      absl::StrCat(tensor.shape(0), " texts (its shape), and at most ", kMostRepeatedPayloads),
      absl::StrCat(count > kMostRepeatedPayloads ? "more" : absl::StrCat(count)));
}

bool IsText(const std::string& name) { return absl::c_linear_search(kTextInputs, name); }

absl::StatusOr<Payload> ReadContents(const Tensor& tensor, const Datatype& datatype) {
  const std::string field = tensor.name() + ".contents";
  const ElementWriter write = WriterOf(datatype.wire);
  if (write == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": not supported for ", datatype.name, "; use raw_input_contents"));
  }
  const InferTensorContents& contents = tensor.contents();
  if (contents.bytes_contents_size() > 0) return InvalidField(field, "numbers", "bytes_contents");
  const auto width = static_cast<size_t>(ByteWidth(*FromWire(datatype.wire)));
  std::string bytes;
  // Packs the elements of a list unless it is empty; `value` converts an element to an InferValue.
  const auto take = [&](const auto& list, auto value) -> absl::Status {
    if (!list.empty()) bytes.assign(static_cast<size_t>(list.size()) * width, '\0');
    for (int i = 0; i < list.size(); ++i) {
      const InferValue element = value(list[i]);
      if (write(element, bytes.data() + static_cast<size_t>(i) * width)) continue;
      return InvalidField(absl::StrCat(field, "[", i, "]"),
                          absl::StrCat("a value of ", datatype.name), Describe(element));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(take(contents.bool_contents(), InferValue::OfFlag));
  RETURN_IF_ERROR(take(contents.int_contents(), InferValue::OfSigned));
  RETURN_IF_ERROR(take(contents.int64_contents(), InferValue::OfSigned));
  RETURN_IF_ERROR(take(contents.uint_contents(), InferValue::OfUnsigned));
  RETURN_IF_ERROR(take(contents.uint64_contents(), InferValue::OfUnsigned));
  RETURN_IF_ERROR(take(contents.fp32_contents(), InferValue::OfFloat));
  RETURN_IF_ERROR(take(contents.fp64_contents(), InferValue::OfFloat));
  const int64_t given = ElementsIn(contents);
  if (static_cast<size_t>(given) * width == bytes.size()) {
    return Payload(MessageSlices{grpc::Slice(bytes)});
  }
  return InvalidField(field, "all elements in one list", absl::StrCat(given, " in several lists"));
}

absl::Status CheckNames(const inference::ModelInferRequest& request,
                        const std::vector<std::string>& accepted) {
  std::set<std::string> seen;
  for (const Tensor& tensor : request.inputs()) {
    if (!absl::c_linear_search(accepted, tensor.name())) {
      return InvalidField("inputs", absl::StrCat("one of ", absl::StrJoin(accepted, ", ")),
                          Quote(tensor.name()));
    }
    if (!seen.insert(tensor.name()).second) {
      return InvalidField("inputs", "each name once", absl::StrCat(tensor.name(), " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status RefuseDatatype(const Tensor& tensor, const std::vector<std::string>& accepted) {
  const std::string field = tensor.name() + ".datatype";
  if (IsText(tensor.name())) return InvalidField(field, kTextDatatype, Quote(tensor.datatype()));
  const bool is_text = tensor.datatype() == kTextDatatype;
  const char* next = !is_text ? ""
                     : absl::c_linear_search(accepted, kTextInputs[0])
                         ? "; send texts as the input text"
                         : "; this model does not accept texts";
  return InvalidField(field, absl::StrCat("one of ", DatatypeNames()),
                      absl::StrCat(Quote(tensor.datatype()), next));
}

absl::Status CheckRank(const Tensor& tensor) {
  if (tensor.name() == "features" && tensor.shape_size() == 4) return absl::OkStatus();  // images
  const bool has_rows = tensor.name() == "features" || tensor.name() == "hidden_states";
  const int rank = has_rows ? 3 : 2;
  if (tensor.shape_size() == rank) return absl::OkStatus();
  return InvalidField(tensor.name() + ".shape", absl::StrCat(rank, " dimensions"),
                      absl::StrCat(tensor.shape_size()));
}

absl::Status CheckSources(const inference::ModelInferRequest& request,
                          const std::vector<Payload>& raw) {
  if (raw.empty()) return absl::OkStatus();
  for (const Tensor& tensor : request.inputs()) {
    if (ElementsIn(tensor.contents()) == 0) continue;
    return CannotCombine(tensor.name() + ".contents", "raw_input_contents");
  }
  if (static_cast<int>(raw.size()) == request.inputs_size()) return absl::OkStatus();
  const bool too_many = std::ssize(raw) > kMostRepeatedPayloads;
  return InvalidField("raw_input_contents",
                      absl::StrCat(request.inputs_size(), " elements (one for each input)"),
                      too_many ? "more" : absl::StrCat(raw.size()));
}

}  // namespace

std::string AllTexts(const inference::ModelInferRequest& request, const std::vector<Payload>& raw) {
  std::string all;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const Tensor& tensor = request.inputs(i);
    if (!IsText(tensor.name())) continue;
    if (static_cast<size_t>(i) < raw.size()) {
      const Payload& bytes = raw[static_cast<size_t>(i)];
      const size_t before = all.size();
      all.resize(before + static_cast<size_t>(bytes.size()));
      bytes.CopyTo(0, bytes.size(), all.data() + before);
    }
    for (const std::string& text : tensor.contents().bytes_contents()) all += text;
    all += '\n';  // an empty text is one, too
  }
  return all;
}

bool HasInput(const inference::ModelInferRequest& request, const std::string& name) {
  return absl::c_any_of(request.inputs(),
                        [&](const Tensor& tensor) { return tensor.name() == name; });
}

absl::Status PlaceInputs(const inference::ModelInferRequest& request,
                         const std::vector<Payload>& raw, const std::vector<std::string>& accepted,
                         google::protobuf::Message& call, PayloadsByPath& payloads) {
  RETURN_IF_ERROR(CheckNames(request, accepted));
  RETURN_IF_ERROR(CheckSources(request, raw));
  for (int i = 0; i < request.inputs_size(); ++i) {
    const Tensor& tensor = request.inputs(i);
    const Payload* const own = raw.empty() ? nullptr : &raw[static_cast<size_t>(i)];
    RETURN_IF_ERROR(CheckNotShared(tensor.name(), tensor.parameters()));
    if (IsText(tensor.name()) && tensor.datatype() == kTextDatatype) {
      ASSIGN_OR_RETURN(std::vector<Payload> texts, ReadTexts(tensor, own));
      const int field = tensor.name() == kTextInputs[0] ? v1::EncodeRequest::kTextsFieldNumber
                                                        : v1::EncodeRequest::kTextPairsFieldNumber;
      int index = 0;
      for (Payload& text : texts) payloads[{field, index++}] = std::move(text);
      continue;
    }
    const Datatype* datatype = IsText(tensor.name()) ? nullptr : FindDatatype(tensor.datatype());
    if (datatype == nullptr) return RefuseDatatype(tensor, accepted);
    Payload data;
    if (own != nullptr) {
      data = *own;
    } else {
      ASSIGN_OR_RETURN(data, ReadContents(tensor, *datatype));
    }
    RETURN_IF_ERROR(CheckRank(tensor));
    // Named as in attendant.v1, except for one.
    const google::protobuf::FieldDescriptor* field = call.GetDescriptor()->FindFieldByName(
        tensor.name() == "input_ids" ? "token_ids" : tensor.name());
    auto& head = static_cast<v1::Tensor&>(*call.GetReflection()->MutableMessage(&call, field));
    *head.mutable_shape() = tensor.shape();
    head.set_dtype(datatype->wire);
    payloads[{field->number()}] = std::move(data);
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
