// Tensor data of a received message, read in place from the slices in which gRPC delivered it.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/data_type.h"

namespace attendant::server {

// The slices of one received message, in order. They own its bytes; payloads share them, immutable.
using MessageSlices = std::vector<grpc::Slice>;

int64_t ByteSize(const MessageSlices& slices);

// A range of bytes of a message, which it keeps alive. Cheap to copy, because bytes are shared.
// Concurrent reads are safe; each read finds its first slice in O(log slices).
class Payload {
 public:
  Payload() = default;  // empty
  // All of `message`.
  explicit Payload(MessageSlices message);
  // Refers to the bytes [offset, offset + size) of `message`, which must contain them.
  Payload(std::shared_ptr<const MessageSlices> message, int64_t offset, int64_t size);

  int64_t size() const { return size_; }  // bytes

  // Copies the bytes [offset, offset + count) of this payload, which must lie within size().
  void CopyTo(int64_t offset, int64_t count, void* target) const;

  // Converts the elements [first, first + count), of the float type `dtype`, to float32. They must
  // lie within size().
  void ReadFloats(DataType dtype, int64_t first, int64_t count, float* target) const;

  // Converts the elements [first, first + count), of the integer type `dtype` or of bool, to int64.
  // A bool becomes 0 or 1; a uint64 above 2^63-1 saturates. The elements must lie within size().
  void ReadIntegers(DataType dtype, int64_t first, int64_t count, int64_t* target) const;

 private:
  // A contiguous, non-empty part of the payload in one slice.
  struct Run {
    int64_t offset;  // of its first byte within the payload
    int64_t size;    // bytes
    const uint8_t* bytes;
  };
  // The runs form the payload in order; `message` owns their bytes.
  struct Layout {
    std::shared_ptr<const MessageSlices> message;
    std::vector<Run> runs;
  };

  // Returns the run that contains byte `offset` of the payload.
  std::vector<Run>::const_iterator RunAt(int64_t offset) const;

  // Calls convert(source, elements, index) for consecutive stretches of the elements [first, first
  // + count), which are `width` bytes wide. `source` points to contiguous, possibly unaligned
  // elements; `index` is the first one's, relative to `first`. Elements within one run are passed
  // together; an element across a slice boundary is copied and passed separately.
  template <typename Convert>
  void ForEachStretch(int64_t width, int64_t first, int64_t count, Convert convert) const;

  std::shared_ptr<const Layout> layout_;
  int64_t size_ = 0;
};

}  // namespace attendant::server
