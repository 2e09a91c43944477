#include "client/cli/print_tensor.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant::client {
namespace {

constexpr int64_t kLongestWhole = 8;
constexpr int64_t kEdge = 3;

// Returns the indices that are shown; nothing stands for a gap.
std::vector<std::optional<int64_t>> Shown(int64_t extent) {
  std::vector<std::optional<int64_t>> indices;
  for (int64_t i = 0; i < extent; ++i) {
    if (extent <= kLongestWhole || i < kEdge || i >= extent - kEdge) {
      indices.push_back(i);
    } else if (i == kEdge) {
      indices.push_back(std::nullopt);
      i = extent - kEdge - 1;
    }
  }
  return indices;
}

class Printer {
 public:
  Printer(std::ostream& out, const Tensor& tensor, std::vector<double> values)
      : out_(out), tensor_(tensor), values_(std::move(values)) {
    fixed_ = std::all_of(values_.begin(), values_.end(), [](double value) {
      const double size = std::abs(value);
      return size == 0 || !std::isfinite(size) || (size >= 1e-5 && size < 1e6);
    });
    // The widest number is the smallest or the largest one; -inf and nan are narrower than any
    // other.
    double smallest = 0;
    double largest = 0;
    for (double value : values_) {
      if (!std::isfinite(value)) continue;
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
    }
    width_ = static_cast<int>(std::max(Format(smallest).size(), Format(largest).size()));
  }

  // Prints the block of `values_` that begins at `offset` and has the dimensions from `axis` on.
  void Print(size_t axis, int64_t offset, const std::string& title) {
    if (tensor_.shape.size() - axis > 2) return PrintBlocks(axis, offset, title);
    if (!title.empty()) out_ << "  " << title << "\n";
    const int64_t columns = tensor_.shape.empty() ? 1 : tensor_.shape.back();
    const int64_t rows = tensor_.shape.size() - axis == 2 ? tensor_.shape[axis] : 1;
    for (const std::optional<int64_t> row : Shown(rows)) {
      out_ << "   ";
      if (!row) {
        out_ << " …\n";
        continue;
      }
      for (const std::optional<int64_t> column : Shown(columns)) {
        out_ << " ";
        if (column) {
          out_ << absl::StrFormat("%*s", width_,
                                  Format(values_[offset + *row * columns + *column]));
        } else {
          out_ << "…";
        }
      }
      out_ << "\n";
    }
  }

 private:
  void PrintBlocks(size_t axis, int64_t offset, const std::string& title) {
    int64_t block = 1;
    for (size_t i = axis + 1; i < tensor_.shape.size(); ++i) block *= tensor_.shape[i];
    for (const std::optional<int64_t> index : Shown(tensor_.shape[axis])) {
      if (index) {
        Print(axis + 1, offset + *index * block, absl::StrCat(title, "[", *index, "]"));
      } else {
        out_ << "  " << title << "[…]\n";
      }
    }
  }

  std::string Format(double value) const {
    if (!IsFloat(tensor_.dtype)) return absl::StrFormat("%.0f", value);
    return fixed_ ? absl::StrFormat("%.6f", value) : absl::StrFormat("%.6e", value);
  }

  std::ostream& out_;
  const Tensor& tensor_;
  std::vector<double> values_;
  bool fixed_ = true;
  int width_ = 0;
};

std::vector<double> Values(const Tensor& tensor) {
  if (!IsFloat(tensor.dtype)) {
    const auto integers = ToInt64s(tensor).value_or(std::vector<int64_t>());
    return std::vector<double>(integers.begin(), integers.end());
  }
  const auto floats = ToFloats(tensor).value_or(std::vector<float>());
  return std::vector<double>(floats.begin(), floats.end());
}

}  // namespace

void PrintTensor(std::ostream& out, const std::string& name, const Tensor& tensor) {
  out << name << " " << Name(tensor.dtype) << " " << ShapeToString(tensor.shape) << "\n";
  std::vector<double> values = Values(tensor);
  if (!values.empty()) Printer(out, tensor, std::move(values)).Print(0, 0, "");
}

}  // namespace attendant::client
