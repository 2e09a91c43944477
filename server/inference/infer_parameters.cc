#include "server/inference/infer_parameters.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/inference/infer_value.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

using inference::InferParameter;

std::string Field(const char* name) { return absl::StrCat("parameters.", name); }

const InferParameter* Find(const InferParameters& parameters, const char* name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : &found->second;
}

const char* TypeOf(const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return "a bool";
    case InferParameter::kInt64Param:
      return "an int64";
    case InferParameter::kStringParam:
      return "a string";
    case InferParameter::kDoubleParam:
      return "a double";
    case InferParameter::kUint64Param:
      return "a uint64";
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return "a list or an object";
}

// Returns null for strings and for parameters without a value.
InferValue ValueOf(const InferParameter& parameter) {
  if (parameter.has_bool_param()) return InferValue::OfFlag(parameter.bool_param());
  if (parameter.has_int64_param()) return InferValue::OfSigned(parameter.int64_param());
  if (parameter.has_uint64_param()) return InferValue::OfUnsigned(parameter.uint64_param());
  if (parameter.has_double_param()) return InferValue::OfFloat(parameter.double_param());
  return {};
}

void DropNulls(InferParameters& parameters) {
  for (auto at = parameters.begin(); at != parameters.end();) {
    const bool null =
        at->second.parameter_choice_case() == InferParameter::PARAMETER_CHOICE_NOT_SET;
    at = null ? parameters.erase(at) : std::next(at);
  }
}

}  // namespace

void DropNullParameters(inference::ModelInferRequest& request) {
  DropNulls(*request.mutable_parameters());
  for (auto& input : *request.mutable_inputs()) DropNulls(*input.mutable_parameters());
  for (auto& output : *request.mutable_outputs()) DropNulls(*output.mutable_parameters());
}

absl::StatusOr<std::optional<int64_t>> NumberIn(const InferParameters& parameters,
                                                const char* name) {
  const InferParameter* parameter = Find(parameters, name);
  if (parameter == nullptr) return std::optional<int64_t>();
  if (const std::optional<int64_t> number = IntegerOf(ValueOf(*parameter))) return number;
  return InvalidField(Field(name), "an int64", TypeOf(*parameter));
}

absl::StatusOr<std::optional<std::string>> TextIn(const InferParameters& parameters,
                                                  const char* name) {
  const InferParameter* parameter = Find(parameters, name);
  if (parameter == nullptr) return std::optional<std::string>();
  if (parameter->has_string_param()) return std::optional<std::string>(parameter->string_param());
  return InvalidField(Field(name), "a string", TypeOf(*parameter));
}

absl::StatusOr<std::optional<bool>> FlagIn(const InferParameters& parameters, const char* name) {
  const InferParameter* parameter = Find(parameters, name);
  if (parameter == nullptr) return std::optional<bool>();
  if (const std::optional<bool> flag = FlagOf(ValueOf(*parameter))) return flag;
  return InvalidField(Field(name), "a bool", TypeOf(*parameter));
}

absl::Status CheckNotShared(const std::string& name, const InferParameters& parameters) {
  if (Find(parameters, "shared_memory_region") == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ".parameters.shared_memory_region: not supported; send the data"));
}

absl::Status CheckReserved(const InferParameters& parameters) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> priority, NumberIn(parameters, "priority"));
  if (priority.value_or(0) < 0) {
    return InvalidField(Field("priority"), "0 or more", absl::StrCat(*priority));
  }
  for (const char* name : {"sequence_start", "sequence_end"}) {
    ASSIGN_OR_RETURN(const std::optional<bool> flag, FlagIn(parameters, name));
    if (!flag.value_or(false)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        Field(name), ": not supported; use EncodeStream of attendant.v1 for sequences in chunks"));
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
