#include "server/wire/payload.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/kernels/convert.h"

namespace attendant::server {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors on the wire are little-endian");

constexpr int64_t kWidestElement = 8;

template <typename Integer>
void Widen(const uint8_t* source, int64_t count, int64_t* target) {
  for (int64_t i = 0; i < count; ++i) {
    Integer value;
    std::memcpy(&value, source + i * int64_t{sizeof(value)}, sizeof(value));
    if constexpr (std::is_same_v<Integer, uint64_t>) {
      value = std::min<uint64_t>(value, std::numeric_limits<int64_t>::max());
    }
    target[i] = static_cast<int64_t>(value);
  }
}

void WidenBools(const uint8_t* source, int64_t count, int64_t* target) {
  for (int64_t i = 0; i < count; ++i) target[i] = source[i] != 0;
}

void ToInt64(DataType from, const uint8_t* source, int64_t count, int64_t* target) {
  switch (from) {
    case DataType::kBool:
      return WidenBools(source, count, target);
    case DataType::kInt8:
      return Widen<int8_t>(source, count, target);
    case DataType::kUInt8:
      return Widen<uint8_t>(source, count, target);
    case DataType::kInt16:
      return Widen<int16_t>(source, count, target);
    case DataType::kUInt16:
      return Widen<uint16_t>(source, count, target);
    case DataType::kInt32:
      return Widen<int32_t>(source, count, target);
    case DataType::kUInt32:
      return Widen<uint32_t>(source, count, target);
    case DataType::kInt64:
      return Widen<int64_t>(source, count, target);
    case DataType::kUInt64:
      return Widen<uint64_t>(source, count, target);
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kFloat32:
    case DataType::kFloat64:
      break;
  }
  assert(false && "an integer type");
}

}  // namespace

int64_t ByteSize(const MessageSlices& slices) {
  int64_t bytes = 0;
  for (const grpc::Slice& slice : slices) bytes += static_cast<int64_t>(slice.size());
  return bytes;
}

Payload::Payload(MessageSlices message) {
  const int64_t size = ByteSize(message);
  *this = Payload(std::make_shared<const MessageSlices>(std::move(message)), 0, size);
}

Payload::Payload(std::shared_ptr<const MessageSlices> message, int64_t offset, int64_t size)
    : size_(size) {
  auto layout = std::make_shared<Layout>();
  int64_t begin = -offset;  // position of the slice relative to the start of the payload
  for (const grpc::Slice& slice : *message) {
    if (begin >= size) break;
    const int64_t end = begin + static_cast<int64_t>(slice.size());
    const int64_t first = std::max<int64_t>(begin, 0);
    const int64_t last = std::min(end, size);
    if (first < last) {
      layout->runs.push_back({first, last - first, slice.begin() + (first - begin)});
    }
    begin = end;
  }
  assert(begin >= size);
  layout->message = std::move(message);
  layout_ = std::move(layout);
}

std::vector<Payload::Run>::const_iterator Payload::RunAt(int64_t offset) const {
  const auto after =
      std::upper_bound(layout_->runs.begin(), layout_->runs.end(), offset,
                       [](int64_t wanted, const Run& run) { return wanted < run.offset; });
  return after - 1;
}

void Payload::CopyTo(int64_t offset, int64_t count, void* target) const {
  assert(0 <= offset && 0 <= count && count <= size_ - offset);
  if (count == 0) return;
  auto* out = static_cast<uint8_t*>(target);
  for (auto run = RunAt(offset); count > 0; ++run) {
    const int64_t skipped = offset - run->offset;
    const int64_t step = std::min(count, run->size - skipped);
    std::memcpy(out, run->bytes + skipped, static_cast<size_t>(step));
    out += step;
    offset += step;
    count -= step;
  }
}

template <typename Convert>
void Payload::ForEachStretch(int64_t width, int64_t first, int64_t count, Convert convert) const {
  assert(0 <= first && 0 <= count && count <= size_ / width - first);
  if (count == 0) return;
  auto run = RunAt(first * width);
  for (int64_t done = 0; done < count;) {
    const int64_t offset = (first + done) * width;
    while (run->offset + run->size <= offset) ++run;
    const int64_t skipped = offset - run->offset;
    const int64_t whole = std::min(count - done, (run->size - skipped) / width);
    if (whole > 0) {
      convert(run->bytes + skipped, whole, done);
      done += whole;
    } else {
      uint8_t element[kWidestElement];
      CopyTo(offset, width, element);
      convert(element, int64_t{1}, done);
      ++done;
    }
  }
}

void Payload::ReadFloats(DataType dtype, int64_t first, int64_t count, float* target) const {
  assert(IsFloat(dtype));
  ForEachStretch(ByteWidth(dtype), first, count,
                 [&](const uint8_t* source, int64_t elements, int64_t index) {
                   ToFloat(dtype, source, elements, target + index);
                 });
}

void Payload::ReadIntegers(DataType dtype, int64_t first, int64_t count, int64_t* target) const {
  assert(!IsFloat(dtype));
  ForEachStretch(ByteWidth(dtype), first, count,
                 [&](const uint8_t* source, int64_t elements, int64_t index) {
                   ToInt64(dtype, source, elements, target + index);
                 });
}

}  // namespace attendant::server
