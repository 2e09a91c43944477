#include "server/tensors/response_tensor.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/kernels/convert.h"

namespace attendant::server {

absl::Status ResponseTensor::Allocate() {
  const int64_t elements = *ElementCount(shape_);
  const int64_t bytes = elements * ByteWidth(dtype_);
  data_.reset(static_cast<uint8_t*>(std::malloc(static_cast<size_t>(bytes))));
  if (data_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes, " bytes for the response"));
  }
  elements_ = elements;
  return absl::OkStatus();
}

void ResponseTensor::Write(int64_t first, const float* values, int64_t count) {
  FromFloat(values, count, dtype_, data_.get() + first * ByteWidth(dtype_));
}

void ResponseTensor::Write(int64_t first, const int32_t* values, int64_t count) {
  std::memcpy(data_.get() + first * ByteWidth(dtype_), values, count * sizeof(int32_t));
}

void ResponseTensor::WriteZeros(int64_t first, int64_t count) {
  // All these types have zero as zero bytes.
  const int64_t width = ByteWidth(dtype_);
  std::memset(data_.get() + first * width, 0, static_cast<size_t>(count * width));
}

absl::string_view ResponseTensor::BytesAt(int64_t first, int64_t count) const {
  const int64_t width = ByteWidth(dtype_);
  return {reinterpret_cast<const char*>(data_.get()) + first * width,
          static_cast<size_t>(count * width)};
}

void ResponseTensor::WriteBytes(int64_t first, absl::string_view bytes) {
  std::memcpy(data_.get() + first * ByteWidth(dtype_), bytes.data(), bytes.size());
}

v1::Tensor ResponseTensor::head() const {
  v1::Tensor head;
  head.set_dtype(ToWire(dtype_));
  head.mutable_shape()->Add(shape_.begin(), shape_.end());
  return head;
}

grpc::Slice ResponseTensor::TakeData() {
  const size_t bytes = static_cast<size_t>(elements_ * ByteWidth(dtype_));
  return grpc::Slice(data_.release(), bytes, std::free);
}

void WriteKeptRows(const TokenLayout& layout, MatrixView<const float> rows,
                   ResponseTensor& target) {
  const int64_t width = rows.cols;
  int64_t kept = 0;
  for (const RowRun& run : layout.runs) {
    if (rows.stride == width) {
      target.Write(run.first * width, rows.row(kept), run.count * width);
    } else {
      for (int64_t i = 0; i < run.count; ++i) {
        target.Write((run.first + i) * width, rows.row(kept + i), width);
      }
    }
    kept += run.count;
  }
}

void WriteSelectedRows(absl::Span<const int32_t> tokens, MatrixView<const float> rows,
                       ResponseTensor& target) {
  int64_t first = 0;
  for (const int32_t token : tokens) {
    if (token >= 0) target.Write(first, rows.row(token), rows.cols);
    first += rows.cols;
  }
}

}  // namespace attendant::server
