#include <limits>
#include <memory>
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

using inference::InferParameter;
using inference::ModelInferRequest;
using Kind = InferValue::Kind;
using Parameters = google::protobuf::Map<std::string, InferParameter>;

constexpr int kMostTensors = 256;
constexpr int kMostDimensions = 16;

absl::Status Expected(const std::string& what, const InferValue& value) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, "; got ", Describe(value)));
}

// How the elements of one `data` are nested.
class Nesting {
 public:
  void Enter() {
    if (!counts_.empty()) Count();
    counts_.push_back(0);
    if (counts_.size() > sizes_.size()) sizes_.push_back(-1);
    if (leaves_ > 0 && counts_.size() > leaves_) regular_ = false;
  }
  void Element() {
    Count();
    ++elements_;
    if (leaves_ == 0) leaves_ = counts_.size();
    if (leaves_ != counts_.size() || sizes_.size() > leaves_) regular_ = false;
  }
  void Leave() {
    int64_t& size = sizes_[counts_.size() - 1];
    if (size < 0) size = counts_.back();
    if (size != counts_.back()) regular_ = false;
    counts_.pop_back();
  }
  bool done() const { return counts_.empty(); }
  int64_t elements() const { return elements_; }

  // Whether all is one list, or nested as the shape says.
  bool Fits(const google::protobuf::RepeatedField<int64_t>& shape) const {
    if (!regular_) return false;
    return sizes_.size() <= 1 || std::vector<int64_t>(shape.begin(), shape.end()) == sizes_;
  }

 private:
  void Count() { ++counts_.back(); }

  std::vector<int64_t> counts_;  // of the open lists, from the outermost on
  std::vector<int64_t> sizes_;   // of lists at each depth; -1: none has ended
  size_t leaves_ = 0;            // the depth of elements; 0: none came
  int64_t elements_ = 0;
  bool regular_ = true;
};

// Elements of a shape; the largest number if there are more.
int64_t ElementsOf(const google::protobuf::RepeatedField<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size == 0) return 0;
    if (__builtin_mul_overflow(elements, size, &elements)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return elements;
}

class HeadReader final : public InferWalk {
 public:
  RestInferHead& head() { return head_; }

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
        nesting_.Element();
        return absl::OkStatus();
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
    if (at == At::kData) nesting_.Enter();
    if (at == At::kInput) {
      if (message().inputs_size() == kMostTensors) return TooMany();
      message().add_inputs();
      head_.inputs.emplace_back();
      nesting_ = {};
    }
    if (at == At::kOutput) {
      if (message().outputs_size() == kMostTensors) return TooMany();
      message().add_outputs();
      outputs_.emplace_back();
    }
    return absl::OkStatus();
  }

  absl::Status OnLeave(At at) override {
    if (at == At::kRoot) return Finish();
    if (at == At::kInput) return FinishInput();
    if (at != At::kData) return absl::OkStatus();
    nesting_.Leave();
    if (!nesting_.done()) return absl::OkStatus();
    head_.inputs.back().has_data = true;
    head_.inputs.back().elements = nesting_.elements();
    return absl::OkStatus();
  }

 private:
  ModelInferRequest& message() { return head_.message; }
  ModelInferRequest::InferInputTensor& input() { return *message().mutable_inputs()->rbegin(); }

  static absl::Status TooMany() {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", kMostTensors, " tensors; got more"));
  }

  static absl::Status SetText(const InferValue& value, std::string& text) {
    if (value.kind != Kind::kText) return Expected("a text", value);
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

  // Those about binary tensors are for this protocol, the others for the server behind it.
  absl::Status SetParameter(const InferValue& value) {
    if (outer() == At::kInput && key() == "binary_data_size") {
      const std::optional<int64_t> size = IntegerOf(value);
      if (size.value_or(-1) < 0) return Expected("a number of bytes", value);
      head_.inputs.back().binary_bytes = size;
      return absl::OkStatus();
    }
    if (outer() == At::kOutput && key() == "binary_data") {
      outputs_.back() = FlagOf(value);
      return outputs_.back() ? absl::OkStatus() : Expected("true or false", value);
    }
    if (outer() == At::kRoot && key() == "binary_data_output") {
      const std::optional<bool> binary = FlagOf(value);
      if (!binary) return Expected("true or false", value);
      head_.binary_by_default = *binary;
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

  absl::Status FinishInput() {
    const RestInferHead::Input& told = head_.inputs.back();
    if (told.has_data == told.binary_bytes.has_value()) {
      // Of a tensor in shared memory, of which there is none here, the server says so itself.
      if (!told.has_data && input().parameters().contains("shared_memory_region")) {
        return absl::OkStatus();
      }
      return absl::InvalidArgumentError(
          absl::StrCat("expected data or the parameter binary_data_size; got ",
                       told.has_data ? "both" : "neither"));
    }
    if (!told.has_data || FindDatatype(input().datatype()) == nullptr) return absl::OkStatus();
    const std::string shape =
        ShapeText(std::vector<int64_t>(input().shape().begin(), input().shape().end()));
    const int64_t elements = ElementsOf(input().shape());
    if (told.elements != elements) {
      return absl::InvalidArgumentError(absl::StrCat("expected data of as many elements as shape ",
                                                     shape, " has; got ", told.elements));
    }
    if (nesting_.Fits(input().shape())) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("expected data as one list, or nested as shape ",
                                                   shape, " says; got it otherwise"));
  }

  absl::Status Finish() {
    for (const std::optional<bool>& binary : outputs_) {
      head_.binary_outputs.push_back(binary.value_or(head_.binary_by_default));
    }
    return absl::OkStatus();
  }

  RestInferHead head_;
  std::vector<std::optional<bool>> outputs_;
  Nesting nesting_;
};

}  // namespace

int64_t RestInferHead::packed_bytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Datatype* type = FindDatatype(message.inputs(static_cast<int>(i)).datatype());
    if (inputs[i].has_data && type != nullptr) {
      bytes += inputs[i].elements * ByteWidth(*FromWire(type->wire));
    }
  }
  return bytes;
}

absl::StatusOr<RestInferHead> ReadInferHead(const MessageSlices& body, int64_t json_bytes) {
  HeadReader reader;
  if (absl::Status status = reader.Walk(body, json_bytes); !status.ok()) return status;
  return std::move(reader.head());
}

}  // namespace attendant::server
