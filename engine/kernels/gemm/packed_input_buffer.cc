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

void PackedInputBuffer::Write(int worker, int64_t row, int64_t column, MatrixView<const float> x) {
  const ComputeMode& mode = layout_.mode;
  const bool has_scale = mode.type == ComputeType::kInt8;
  assert(column + x.cols <= layout_.in && (!has_scale || x.cols == layout_.k_block));
  for (int64_t done = 0, count; done < x.cols; done += count, column += count) {
    const int64_t offset = column % layout_.k_block;
    count = std::min(x.cols - done, layout_.k_block - offset);
    const int64_t first_part = column / layout_.k_block * InputParts(mode);
    char* const target = Place(first_part, row) + offset * ElementBytes(mode);
    ConvertInputRows(mode, x.Columns(done, count), scratch_[worker].data(),
                     {target, block_stride_, row_stride()},
                     has_scale ? scales_.data() + row : nullptr);
  }
}

std::optional<Bf16Rows> PackedInputBuffer::NativePlace(int64_t row, int64_t column, int64_t count) {
  const int64_t offset = column % layout_.k_block;
  if (!RoundsNatively(layout_.mode) || offset + count > layout_.k_block) return std::nullopt;
  char* const block = Place(column / layout_.k_block, row);
  return Bf16Rows{reinterpret_cast<uint16_t*>(block) + offset, layout_.k_block};
}

PackedInputView PackedInputBuffer::Rows(int64_t first) const {
  const float* scales = layout_.mode.type == ComputeType::kInt8 ? scales_.data() + first : nullptr;
  return {data_.data() + first * row_stride(), row_stride(), block_stride_, scales};
}

int64_t PackedInputBuffer::row_stride() const {
  return layout_.k_block * ElementBytes(layout_.mode);
}

PackedInput::PackedInput(PackedInputBuffer& buffer) : buffer_(&buffer), number_(buffer.number()) {}

void PackedInput::WriteRows(int worker, int64_t first, MatrixView<const float> x,
                            int64_t column) const {
  if (buffer_ == nullptr) return;
  assert(number_ == buffer_->number());
  buffer_->Write(worker, first_row_ + first, column, x);
}

std::optional<Bf16Rows> PackedInput::NativePlace(int64_t row, int64_t column, int64_t count) const {
  if (buffer_ == nullptr) return std::nullopt;
  assert(number_ == buffer_->number());
  return buffer_->NativePlace(first_row_ + row, column, count);
}

bool PackedInput::TakesColumns() const {
  return buffer_ != nullptr && RoundsElementwise(buffer_->layout().mode);
}

PackedInput PackedInput::From(int64_t row) const {
  PackedInput rest = *this;
  rest.first_row_ += row;
  return rest;
}

std::optional<PackedInputView> PackedInput::Find(const PackedInputLayout& layout) const {
  if (buffer_ == nullptr || number_ != buffer_->number() || buffer_->layout() != layout) {
    return std::nullopt;
  }
  return buffer_->Rows(first_row_);
}

}  // namespace attendant
