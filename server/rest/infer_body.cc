#include "server/rest/infer_body.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/data_type.h"
#include "engine/base/status_macros.h"
#include "server/rest/infer_elements.h"
#include "server/rest/infer_json_reader.h"
#include "server/tensors/status_mapping.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;
using Kind = InferValue::Kind;
using Parameters = google::protobuf::Map<std::string, InferParameter>;

constexpr int kMostTensors = 256;
constexpr int kMostDimensions = 16;
// Of a text in JSON, where a character of one byte may take six: "\u0041".
constexpr int64_t kMostTextBytes = int64_t{6} << 20;

absl::Status Expected(const std::string& what, const InferValue& value) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, "; got ", Describe(value)));
}

class InferBodyReader final : public InferJsonReader {
 public:
  explicit InferBodyReader(const std::function<absl::Status(int64_t)>& reserve)
      : reserve_(reserve) {}

  absl::StatusOr<InferBody> Read(const std::shared_ptr<const MessageSlices>& slices,
                                 int64_t json_bytes) {
    RETURN_IF_ERROR(InferJsonReader::Read(*slices, json_bytes));
    RETURN_IF_ERROR(AddData(slices, json_bytes));
    for (const std::optional<bool>& binary : outputs_) {
      body_.binary_outputs.push_back(binary.value_or(body_.binary_by_default));
    }
    return std::move(body_);
  }

 protected:
  absl::Status OnScalar(At at, const InferValue& value) override {
    switch (at) {
      case At::kRoot:
        return key() == "id" ? SetText(value, *message().mutable_id()) : absl::OkStatus();
      case At::kInput:
        if (key() == "name") return SetText(value, *input().mutable_name());
        if (key() == "datatype") return SetText(value, *input().mutable_datatype());
        return absl::OkStatus();
      case At::kShape:
        return AddDimension(value);
      case At::kData:
        return elements().Add(value);
      case At::kOutput:
        if (key() != "name") return absl::OkStatus();
        return SetText(value, *message().mutable_outputs()->rbegin()->mutable_name());
      case At::kParameters:
        return SetParameter(value);
      default:
        return absl::OkStatus();
    }
  }

  absl::Status OnEnter(At at) override {
    absl::Status status;
    if (at == At::kData) {
      if (outer() == At::kInput) status = BeginData();
      if (status.ok()) elements().Enter();
    } else if (at == At::kInput) {
      if (message().inputs_size() == kMostTensors) return TooMany();
      message().add_inputs();
      inputs_.emplace_back();
    } else if (at == At::kOutput) {
      if (message().outputs_size() == kMostTensors) return TooMany();
      message().add_outputs();
      outputs_.emplace_back();
    }
    return status;
  }

  absl::Status OnLeave(At at) override {
    if (at == At::kShape) inputs_.back().has_shape = true;
    if (at == At::kInput) return FinishInput();
    if (at != At::kData) return absl::OkStatus();
    elements().Leave();
    if (!elements().done()) return absl::OkStatus();
    inputs_.back().data_end = text().position();
    text().SetMostTokenBytes(JsonSource::kMostTokenBytes);
    return absl::OkStatus();
  }

 private:
  struct Input {
    bool has_shape = false;
    int64_t data_begin = 0, data_end = 0;      // in the body; 0: there is no data
    InferElements elements = {};               // of the data
    std::optional<int64_t> binary_bytes = {};  // after the JSON
  };

  ModelInferRequest& message() { return body_.message; }
  ModelInferRequest::InferInputTensor& input() { return *message().mutable_inputs()->rbegin(); }
  InferElements& elements() { return inputs_.back().elements; }

  static absl::Status TooMany() {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", kMostTensors, " tensors; got more"));
  }

  static absl::Status SetText(const InferValue& value, std::string& text) {
    if (value.kind != Kind::kText) return Expected("a string", value);
    text = std::move(*value.text);
    return absl::OkStatus();
  }

  absl::Status AddDimension(const InferValue& value) {
    const std::optional<int64_t> size = IntegerOf(value);
    if (size.value_or(-1) < 0) return Expected("a whole number, 0 or more", value);
    if (input().shape_size() == kMostDimensions) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected at most ", kMostDimensions, " dimensions; got more"));
    }
    input().add_shape(*size);
    return absl::OkStatus();
  }

  // Those about binary tensors are for this protocol, the others for the server.
  absl::Status SetParameter(const InferValue& value) {
    if (outer() == At::kInput && key() == "binary_data_size") {
      const std::optional<int64_t> size = IntegerOf(value);
      if (size.value_or(-1) < 0) return Expected("a number of bytes", value);
      inputs_.back().binary_bytes = size;
      return absl::OkStatus();
    }
    if (outer() == At::kOutput && key() == "binary_data") {
      outputs_.back() = FlagOf(value);
      return outputs_.back() ? absl::OkStatus() : Expected("true or false", value);
    }
    if (outer() == At::kRoot && key() == "binary_data_output") {
      const std::optional<bool> binary = FlagOf(value);
      if (!binary) return Expected("true or false", value);
      body_.binary_by_default = *binary;
      return absl::OkStatus();
    }
    Parameters& parameters = outer() == At::kInput ? *input().mutable_parameters()
                             : outer() == At::kOutput
                                 ? *message().mutable_outputs()->rbegin()->mutable_parameters()
                                 : *message().mutable_parameters();
    Put(value, parameters[key()]);
    return absl::OkStatus();
  }

  // A list or an object leaves the parameter without a value, which is refused if it has a meaning.
  static void Put(const InferValue& value, InferParameter& parameter) {
    if (value.kind == Kind::kFlag) parameter.set_bool_param(value.flag);
    if (value.kind == Kind::kSigned) parameter.set_int64_param(value.number);
    if (value.kind == Kind::kUnsigned) parameter.set_uint64_param(value.count);
    if (value.kind == Kind::kFloat) parameter.set_double_param(value.real);
    if (value.kind == Kind::kText) parameter.set_string_param(std::move(*value.text));
  }

  // Packs the elements while they are read, if the type and the shape are known.
  absl::Status BeginData() {
    Input& read = inputs_.back();
    const bool again = read.data_end != 0;
    if (!again) read.data_begin = text().position() - 1;
    if (!again && !read.has_shape) return absl::OkStatus();
    if (input().datatype() == kTextDatatype) return BeginTexts();
    const Datatype* type = FindDatatype(input().datatype());
    if (type == nullptr) return absl::OkStatus();
    if (WriterOf(type->wire) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected the parameter binary_data_size (JSON has no ", type->name, "); got data"));
    }
    // Of two characters of a list, at most one is an element.
    const int64_t most =
        again ? elements().count() : std::min(ElementsOf(input().shape()), text().left() / 2 + 1);
    body_.packed_bytes += most * ByteWidth(*FromWire(type->wire));
    RETURN_IF_ERROR(reserve_(body_.packed_bytes));
    elements().PackAs(*type, most);
    return absl::OkStatus();
  }

  // The parser holds a text up to three times, and packed texts are hardly longer than the JSON.
  absl::Status BeginTexts() {
    body_.packed_bytes += 4 * std::min(text().left(), kMostTextBytes) + 2 * text().left();
    RETURN_IF_ERROR(reserve_(body_.packed_bytes));
    elements().PackTexts();
    text().SetMostTokenBytes(kMostTextBytes);
    return absl::OkStatus();
  }

  absl::Status FinishInput() {
    const Input& read = inputs_.back();
    const bool has_data = read.data_end != 0;
    if (has_data == read.binary_bytes.has_value()) {
      // Another check reports tensors in shared memory, which is not supported.
      if (!has_data && input().parameters().contains("shared_memory_region")) {
        return absl::OkStatus();
      }
      return absl::InvalidArgumentError(
          absl::StrCat("expected either data or the parameter binary_data_size; got ",
                       has_data ? "both" : "neither"));
    }
    const std::string& type = input().datatype();
    if (!has_data || (type != kTextDatatype && FindDatatype(type) == nullptr)) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(elements().CheckFit(input().shape()));
    if (!elements().is_packed()) ReadAgain("data", read.data_begin, read.data_end);
    return absl::OkStatus();
  }

  // Those after the JSON have to be all that is there.
  absl::Status AddData(const std::shared_ptr<const MessageSlices>& slices, int64_t json_bytes) {
    const int64_t size = ByteSize(*slices);
    int64_t at = json_bytes;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::optional<int64_t>& bytes = inputs_[i].binary_bytes;
      if (bytes.value_or(0) > size - at) {
        return InvalidField(
            message().inputs(static_cast<int>(i)).name() + ".parameters.binary_data_size",
            absl::StrCat("at most ", size - at, " (the bytes left after the JSON)"),
            absl::StrCat(*bytes));
      }
      body_.data.push_back(bytes ? Payload(slices, at, *bytes) : inputs_[i].elements.packed());
      at += bytes.value_or(0);
    }
    if (at == size) return absl::OkStatus();
    return InvalidField(
        "the body",
        absl::StrCat(at - json_bytes, " bytes after the JSON (the inputs' binary_data_size)"),
        absl::StrCat(size - json_bytes));
  }

  const std::function<absl::Status(int64_t)>& reserve_;
  InferBody body_;
  // Both in the order of the message.
  std::vector<Input> inputs_;
  std::vector<std::optional<bool>> outputs_;  // whether they are binary
};

}  // namespace

absl::StatusOr<InferBody> ReadInferBody(const std::shared_ptr<const MessageSlices>& body,
                                        int64_t json_bytes,
                                        const std::function<absl::Status(int64_t)>& reserve) {
  return InferBodyReader(reserve).Read(body, json_bytes);
}

}  // namespace attendant::server
