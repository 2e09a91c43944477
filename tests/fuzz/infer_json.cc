#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/inference/infer.h"
#include "server/rest/infer_body.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/server/support/service_parts.h"

namespace attendant {

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
  int64_t reserved = 0;
  auto read = server::ReadInferBody(body, json_bytes, [&](int64_t bytes) {
    reserved = bytes;
    return absl::OkStatus();
  });
  // Eight bytes for each element, which has two characters, and one more of each of 256 tensors.
  if (reserved > 4 * json_bytes + 256 * 8) return absl::StrCat("reserved ", reserved, " bytes");
  if (!read.ok()) return absl::IsInvalidArgument(read.status()) ? "" : read.status().ToString();
  int64_t data = 0;
  for (const server::Payload& payload : read->data) data += payload.size();
  if (data != read->packed_bytes + static_cast<int64_t>(behind)) {
    return absl::StrCat("the data has ", data, " bytes");
  }
  read->message.set_model_name("tiny");
  const absl::Status status =
      server::PrepareInferMessage(read->message, read->data, static_cast<int64_t>(input.size()), "",
                                  context)
          .status();
  const bool expected =
      status.ok() || absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  return expected ? "" : "unexpected status: " + status.ToString();
}

}  // namespace attendant
