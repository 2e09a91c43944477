#include "server/rest/infer_content.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/rest/rest_answer.h"

namespace attendant::server {
namespace {

constexpr ptrdiff_t kMostNumberBytes = 32;  // with its comma

}  // namespace

InferContent::InferContent(InferAnswer answer, const std::vector<bool>& binary) {
  const inference::ModelInferResponse& message = answer.message;
  std::string text = "{";
  if (!message.id().empty()) absl::StrAppend(&text, "\"id\":", JsonText(message.id()), ",");
  absl::StrAppend(&text, "\"model_name\":", JsonText(message.model_name()),
                  ",\"model_version\":", JsonText(message.model_version()), ",\"outputs\":[");
  std::vector<Part> behind;
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& output = message.outputs(i);
    grpc::Slice& tensor = answer.raw[static_cast<size_t>(i)];
    absl::StrAppend(&text, i == 0 ? "" : ",", "{\"name\":", JsonText(output.name()),
                    ",\"datatype\":", JsonText(output.datatype()), ",\"shape\":[",
                    absl::StrJoin(output.shape(), ","), "],");
    if (binary[static_cast<size_t>(i)]) {
      absl::StrAppend(&text, "\"parameters\":{\"binary_data_size\":", tensor.size(), "}}");
      behind.push_back({"", std::move(tensor)});
      continue;
    }
    absl::StrAppend(&text, "\"data\":[");
    parts_.push_back({std::exchange(text, "]}"), std::move(tensor), true});
  }
  parts_.push_back({text + "]}"});
  has_binary_ = !behind.empty();
  for (Part& part : behind) parts_.push_back(std::move(part));
  Measure();
}

void InferContent::Measure() {
  char number[kMostNumberBytes];
  for (const Part& part : parts_) {
    json_bytes_ += static_cast<int64_t>(part.text.size());
    if (!part.as_numbers) {
      binary_bytes_ += static_cast<int64_t>(part.tensor.size());
      continue;
    }
    for (size_t i = 0; i < Elements(part); ++i) {
      json_bytes_ += static_cast<int64_t>(Write(part, i, number));
    }
  }
}

size_t InferContent::Write(const Part& part, size_t index, char* to) {
  char* end = to;
  if (index > 0) *end++ = ',';
  float value;
  std::memcpy(&value, part.tensor.begin() + index * sizeof value, sizeof value);
  // JSON has no NaN and no infinity, and many readers take -0 for the integer 0.
  const char* word = !std::isfinite(value)               ? "null"
                     : value == 0 && std::signbit(value) ? "-0.0"
                                                         : "";
  if (*word != '\0') {
    std::memcpy(end, word, 4);
    return static_cast<size_t>(end - to) + 4;
  }
  return static_cast<size_t>(std::to_chars(end, to + kMostNumberBytes, value).ptr - to);
}

size_t InferContent::Read(char* to, size_t most) {
  size_t written = 0;
  while (written < most && (!piece_.empty() || NextPiece())) {
    const size_t step = std::min(most - written, piece_.size());
    std::memcpy(to + written, piece_.data(), step);
    piece_.remove_prefix(step);
    written += step;
  }
  return written;
}

bool InferContent::NextPiece() {
  if (part_ == parts_.size()) return false;
  const Part& part = parts_[part_];
  if (!in_tensor_) {
    in_tensor_ = true;
    element_ = 0;
    piece_ = part.text;
  } else if (part.as_numbers && element_ < Elements(part)) {
    char* end = numbers_;
    while (element_ < Elements(part) && numbers_ + sizeof numbers_ - end >= kMostNumberBytes) {
      end += Write(part, element_++, end);
    }
    piece_ = {numbers_, static_cast<size_t>(end - numbers_)};
  } else {
    in_tensor_ = false;
    ++part_;
    if (!part.as_numbers) {
      piece_ = {reinterpret_cast<const char*>(part.tensor.begin()), part.tensor.size()};
    }
  }
  return true;
}

}  // namespace attendant::server
