#include "server/wire/payload.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace attendant::server {

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

}  // namespace attendant::server
