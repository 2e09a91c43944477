#include "server/rest/infer_content.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/http/http_content.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"

namespace attendant::server {
namespace {

constexpr size_t kPieceBytes = 16 << 10;  // of a tensor

// Some text, and after it a tensor, as numbers or as bytes.
struct Part {
  std::string text;
  grpc::Slice tensor = {};
  bool as_numbers = false;
};

// The bytes of a part's tensor from `begin` on; the first piece also has the text.
struct Piece {
  size_t part, begin;
};

// The parts of the document, and after them the tensors that are sent as bytes.
std::vector<Part> PartsOf(InferAnswer answer, const std::vector<bool>& binary) {
  const inference::ModelInferResponse& message = answer.message;
  std::string text = "{";
  if (!message.id().empty()) absl::StrAppend(&text, "\"id\":", text::QuoteJson(message.id()), ",");
  absl::StrAppend(&text, "\"model_name\":", text::QuoteJson(message.model_name()),
                  ",\"model_version\":", text::QuoteJson(message.model_version()),
                  ",\"outputs\":[");
  std::vector<Part> parts, binary_parts;
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& output = message.outputs(i);
    grpc::Slice& tensor = answer.raw[static_cast<size_t>(i)];
    absl::StrAppend(&text, i == 0 ? "" : ",", "{\"name\":", text::QuoteJson(output.name()),
                    ",\"datatype\":", text::QuoteJson(output.datatype()), ",\"shape\":[",
                    absl::StrJoin(output.shape(), ","), "],");
    if (binary[static_cast<size_t>(i)]) {
      absl::StrAppend(&text, "\"parameters\":{\"binary_data_size\":", tensor.size(), "}}");
      binary_parts.push_back({"", std::move(tensor)});
      continue;
    }
    absl::StrAppend(&text, "\"data\":[");
    parts.push_back({std::exchange(text, "]}"), std::move(tensor), true});
  }
  parts.push_back({text + "]}"});
  for (Part& part : binary_parts) parts.push_back(std::move(part));
  return parts;
}

void AppendPiece(const Part& part, size_t begin, std::string* to) {
  if (begin == 0) *to += part.text;
  const size_t end = std::min(begin + kPieceBytes, part.tensor.size());
  const auto* bytes = reinterpret_cast<const char*>(part.tensor.begin());
  if (!part.as_numbers) {
    to->append(bytes + begin, end - begin);
    return;
  }
  for (size_t at = begin; at < end; at += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes + at, sizeof value);
    if (at > 0) *to += ',';
    if (std::isfinite(value)) {
      AppendNumber(value, to);
    } else {
      *to += "null";
    }
  }
}

}  // namespace

HttpAnswer MakeInferContent(InferAnswer answer, const std::vector<bool>& binary) {
  std::vector<Part> parts = PartsOf(std::move(answer), binary);
  const auto first_binary =
      parts.size() - static_cast<size_t>(std::count(binary.begin(), binary.end(), true));
  std::vector<Piece> pieces;
  size_t json_pieces = 0;
  int64_t binary_bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t bytes = parts[i].tensor.size();
    for (size_t at = 0; at == 0 || at < bytes; at += kPieceBytes) pieces.push_back({i, at});
    if (i < first_binary) json_pieces = pieces.size();
    if (i >= first_binary) binary_bytes += static_cast<int64_t>(bytes);
  }
  const bool has_binary = first_binary < parts.size();
  const size_t count = pieces.size();
  const HttpContent::Make make = [parts = std::move(parts), pieces = std::move(pieces)](
                                     size_t index, std::string* to) {
    AppendPiece(parts[pieces[index].part], pieces[index].begin, to);
  };
  const int64_t json_bytes = HttpContent::Measure(0, json_pieces, make);
  HttpAnswer made = JsonBody("");
  made.content = std::make_shared<HttpContent>("", 0, count, json_bytes + binary_bytes, make);
  if (has_binary) {
    made.content_type = "application/octet-stream";
    made.headers.emplace_back(kJsonLength, absl::StrCat(json_bytes));
  }
  return made;
}

}  // namespace attendant::server
