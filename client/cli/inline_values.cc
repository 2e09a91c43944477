#include "client/cli/inline_values.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attendant::client {
namespace {

absl::Status NoNumber(const std::string& item) {
  return absl::InvalidArgumentError(absl::StrCat("expected a number in range; got \"", item, "\""));
}

// Returns whether the value became infinite although its text, such as 1e39, is a finite number.
bool IsTooLarge(const std::string& item, float value) {
  return std::isinf(value) && item.find_first_of("iI") == std::string::npos;
}

std::vector<std::string> Rows(const std::string& text) { return absl::StrSplit(text, ';'); }

std::vector<std::string> Items(const std::string& row) { return absl::StrSplit(row, ','); }

}  // namespace

absl::StatusOr<Tensor> ParseFloatRows(const std::string& text) {
  std::vector<float> values;
  const std::vector<std::string> rows = Rows(text);
  const size_t columns = Items(rows.front()).size();
  for (const std::string& row : rows) {
    const std::vector<std::string> items = Items(row);
    if (items.size() != columns) {
      return absl::InvalidArgumentError(absl::StrCat("expected rows of one length; got rows of ",
                                                     columns, " and of ", items.size(), " values"));
    }
    for (const std::string& item : items) {
      float value = 0;
      if (!absl::SimpleAtof(item, &value) || IsTooLarge(item, value)) return NoNumber(item);
      values.push_back(value);
    }
  }
  return FloatTensor({static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns)}, values);
}

absl::StatusOr<std::vector<std::vector<int64_t>>> ParseIntRows(const std::string& text) {
  std::vector<std::vector<int64_t>> rows;
  for (const std::string& row : Rows(text)) {
    std::vector<int64_t>& values = rows.emplace_back();
    for (const std::string& item : Items(row)) {
      int64_t value = 0;
      if (!absl::SimpleAtoi(item, &value)) return NoNumber(item);
      values.push_back(value);
    }
  }
  return rows;
}

bool LooksInline(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789-,; ") == std::string::npos;
}

bool LooksLikeFloats(const std::string& text) {
  float first = 0;
  return absl::SimpleAtof(text.substr(0, text.find_first_of(",;")), &first);
}

absl::StatusOr<std::vector<int64_t>> ParseDimensions(const std::string& text) {
  std::vector<int64_t> dimensions;
  for (const std::string& item : std::vector<std::string>(absl::StrSplit(text, 'x'))) {
    int64_t dimension = 0;
    if (!absl::SimpleAtoi(item, &dimension) || dimension < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a shape such as 2x5x768; got \"", text, "\""));
    }
    dimensions.push_back(dimension);
  }
  return dimensions;
}

absl::StatusOr<LayerSpan> ParseLayerSpan(const std::string& flag, const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  LayerSpan span;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &span.first) ||
      !absl::SimpleAtoi(parts[1], &span.count)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": expected FIRST:COUNT, such as 0:6; got \"", text, "\""));
  }
  return span;
}

}  // namespace attendant::client
