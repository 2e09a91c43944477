#include "server/rest/infer_json.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/data_type.h"
#include "server/inference/datatypes.h"
#include "server/inference/infer.h"
#include "server/tensors/tensor_check.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/server/support/service_parts.h"

namespace attendant {
namespace {

// What an input's data has to be by what was counted.
std::string CheckSize(const server::RestInferHead& head, size_t i, int64_t bytes) {
  const server::RestInferHead::Input& input = head.inputs[i];
  const server::Datatype* type =
      server::FindDatatype(head.message.inputs(static_cast<int>(i)).datatype());
  int64_t expected = input.binary_bytes.value_or(0);
  if (input.has_data && type != nullptr) {
    expected = input.elements * ByteWidth(*server::FromWire(type->wire));
  }
  return bytes == expected ? "" : absl::StrCat("input ", i, " has ", bytes, " bytes");
}

}  // namespace

std::string FuzzInferJson(absl::string_view input) {
  static auto& parts = *new server::ServiceParts(absl::Milliseconds(1));
  static const auto& context = *new server::ServiceContext(parts.Context({}));
  if (input.size() < 2) return "";
  const size_t piece = 1 + static_cast<uint8_t>(input[0]);
  input.remove_prefix(2);
  const size_t behind = std::min<size_t>(static_cast<uint8_t>(input.data()[-1]), input.size());
  auto body = std::make_shared<server::MessageSlices>();
  for (size_t at = 0; at < input.size(); at += piece) {
    body->emplace_back(std::string(input.substr(at, piece)));
  }
  const auto json_bytes = static_cast<int64_t>(input.size() - behind);
  const absl::StatusOr<server::RestInferHead> head = server::ReadInferHead(*body, json_bytes);
  if (!head.ok()) {
    return absl::IsInvalidArgument(head.status()) ? "" : head.status().ToString();
  }
  const auto data = server::ReadInferData(*head, body, json_bytes);
  if (!data.ok()) return absl::IsInvalidArgument(data.status()) ? "" : data.status().ToString();
  for (size_t i = 0; i < data->size(); ++i) {
    const std::string wrong = CheckSize(*head, i, (*data)[i].size());
    if (!wrong.empty()) return wrong;
  }
  inference::ModelInferRequest message = head->message;
  message.set_model_name("tiny");
  const absl::Status status =
      server::PrepareInferMessage(message, *data, static_cast<int64_t>(input.size()), context)
          .status();
  const bool expected =
      status.ok() || absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  return expected ? "" : "unexpected status: " + status.ToString();
}

}  // namespace attendant
