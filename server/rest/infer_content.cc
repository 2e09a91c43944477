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

constexpr size_t kMostNumberBytes = 32;  // with its comma

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
  size_t written = std::min(most, left_.size());
  std::memcpy(to, left_.data(), written);
  left_.erase(0, written);
  const auto copy = [&](const char* from, size_t size) {
    const size_t step = std::min(most - written, size - at_);
    std::memcpy(to + written, from + at_, step);
    written += step;
    at_ += step;
    return at_ == size;
  };
  while (written < most && part_ < parts_.size()) {
    const Part& part = parts_[part_];
    if (!in_tensor_) {
      if (!copy(part.text.data(), part.text.size())) break;
      in_tensor_ = true;
      at_ = 0;
    } else if (!part.as_numbers) {
      if (!copy(reinterpret_cast<const char*>(part.tensor.begin()), part.tensor.size())) break;
      in_tensor_ = false;
      at_ = 0;
      ++part_;
    } else if (at_ == Elements(part)) {
      in_tensor_ = false;
      at_ = 0;
      ++part_;
    } else if (most - written >= kMostNumberBytes) {
      written += Write(part, at_++, to + written);
    } else {
      char number[kMostNumberBytes];
      const size_t size = Write(part, at_++, number);
      const size_t step = std::min(size, most - written);
      std::memcpy(to + written, number, step);
      left_.assign(number + step, size - step);
      written += step;
    }
  }
  return written;
}

}  // namespace attendant::server
