#include "engine/kernels/gemm/packed_input_buffer.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "engine/kernels/gemm/number_format.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {
namespace {

// Returns the bytes of an element in one block.
int64_t ElementBytes(const ComputeMode& mode) { return InputElementBytes(mode) / InputParts(mode); }

// Returns the number of blocks: one per part and block of columns.
int64_t Blocks(const PackedInputLayout& layout) {
  return layout.in / layout.k_block * InputParts(layout.mode);
}

}  // namespace

void PackedInputBuffer::Reserve(const PackedInputLayout& layout, int64_t rows) {
  if (layout.mode.type == ComputeType::kF32) return;
  const auto known = std::find_if(reserved_.begin(), reserved_.end(),
                                  [&](const Reserved& one) { return one.layout == layout; });
  if (known == reserved_.end()) {
    reserved_.push_back({layout, rows});
  } else {
    known->rows = std::max(known->rows, rows);
  }
  data_.GrowTo(rows * layout.in * InputElementBytes(layout.mode));
  if (layout.mode.type != ComputeType::kInt8) return;
  scales_.GrowTo(rows);
  for (AlignedBuffer<float>& row : scratch_) row.GrowTo(layout.in);
}

PackedInput PackedInputBuffer::Begin(const PackedInputLayout& layout, int64_t rows) {
  if (layout.mode.type == ComputeType::kF32) return {};
  const int64_t padded_rows = PaddedRows(rows);
  assert(padded_rows * layout.in * InputElementBytes(layout.mode) <= data_.size());
  layout_ = layout;
  block_stride_ = padded_rows * row_stride();
  ++number_;
  const int64_t tail = padded_rows - rows;
  for (int64_t block = 0; block < Blocks(layout); ++block) {
    std::memset(Place(block, rows), 0, tail * row_stride());
  }
  if (layout.mode.type == ComputeType::kInt8) std::fill_n(scales_.data() + rows, tail, 0.0f);
  return PackedInput(*this);
}

PackedInput PackedInputBuffer::Begin(int64_t in, int64_t rows) {
  const auto known = std::find_if(reserved_.begin(), reserved_.end(), [&](const Reserved& one) {
    return one.layout.in == in && PaddedRows(rows) <= one.rows;
  });
  return known == reserved_.end() ? PackedInput() : Begin(known->layout, rows);
}

int64_t PackedInputBuffer::row_stride() const {
  return layout_.k_block * ElementBytes(layout_.mode);
}

PackedInput::PackedInput(PackedInputBuffer& buffer) : buffer_(&buffer), number_(buffer.number_) {}

void PackedInput::WriteRows(int worker, int64_t first, MatrixView<const float> x,
                            int64_t column) const {
  if (buffer_ == nullptr) return;
  assert(number_ == buffer_->number_);
  const auto& [mode, in, k_block] = buffer_->layout_;
  const int64_t row = first_row_ + first;
  const bool has_scale = mode.type == ComputeType::kInt8;
  assert(column + x.cols <= in && (!has_scale || x.cols == k_block));
  for (int64_t done = 0, count; done < x.cols; done += count, column += count) {
    const int64_t offset = column % k_block;
    count = std::min(x.cols - done, k_block - offset);
    char* const target = buffer_->Place(column / k_block * InputParts(mode), row);
    ConvertInputRows(
        mode, x.Columns(done, count), buffer_->scratch_[worker].data(),
        {target + offset * ElementBytes(mode), buffer_->block_stride_, buffer_->row_stride()},
        has_scale ? buffer_->scales_.data() + row : nullptr);
  }
}

std::optional<Bf16Rows> PackedInput::NativePlace(int64_t row, int64_t column, int64_t count) const {
  if (buffer_ == nullptr) return std::nullopt;
  assert(number_ == buffer_->number_);
  const int64_t k_block = buffer_->layout_.k_block, offset = column % k_block;
  if (!RoundsNatively(buffer_->layout_.mode) || offset + count > k_block) return std::nullopt;
  char* const block = buffer_->Place(column / k_block, first_row_ + row);
  return Bf16Rows{reinterpret_cast<uint16_t*>(block) + offset, k_block};
}

bool PackedInput::TakesColumns() const {
  return buffer_ != nullptr && RoundsElementwise(buffer_->layout_.mode);
}

PackedInput PackedInput::From(int64_t row) const {
  PackedInput rest = *this;
  rest.first_row_ += row;
  return rest;
}

std::optional<PackedInputView> PackedInput::Find(const PackedInputLayout& layout) const {
  if (buffer_ == nullptr || number_ != buffer_->number_ || buffer_->layout_ != layout) {
    return std::nullopt;
  }
  const bool has_scale = layout.mode.type == ComputeType::kInt8;
  return PackedInputView{buffer_->Place(0, first_row_), buffer_->row_stride(),
                         buffer_->block_stride_,
                         has_scale ? buffer_->scales_.data() + first_row_ : nullptr};
}

}  // namespace attendant
