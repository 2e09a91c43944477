#include "server/transport/unfinished_messages.h"

#include <algorithm>

namespace attendant::server {
namespace {

// A flag that says whether the message is compressed, and the length, in big-endian order.
constexpr int kPrefixBytes = 5;

}  // namespace

bool UnfinishedMessages::Begin(uint32_t stream) {
  if (Find(stream) != nullptr) return true;
  if (streams_.size() == streams_.capacity()) return false;
  streams_.insert(LowerBound(stream), {.id = stream});
  return true;
}

void UnfinishedMessages::Receive(uint32_t stream, absl::string_view data) {
  Stream* const found = Find(stream);
  if (found == nullptr) return;
  found->body += static_cast<int64_t>(data.size());
  if (found->reset_by_server) return ResetByServer(stream);
  if (found->ended_by_server) return;
  Stream& of_data = *found;
  while (!data.empty()) {
    if (of_data.prefix_bytes < kPrefixBytes) {
      of_data.length = of_data.length << 8 | static_cast<uint8_t>(data[0]);  // drops the flag
      ++of_data.prefix_bytes;
      data.remove_prefix(1);
    } else {
      const auto missing = static_cast<size_t>(int64_t{of_data.length} - of_data.received);
      const size_t more = std::min(missing, data.size());
      SetReceived(of_data, of_data.received + static_cast<int64_t>(more));
      data.remove_prefix(more);
    }
    if (of_data.prefix_bytes == kPrefixBytes && of_data.received == int64_t{of_data.length}) {
      SetReceived(of_data, 0);
      of_data.prefix_bytes = 0;
    }
  }
}

void UnfinishedMessages::EndByClient(uint32_t stream) {
  EndByServer(stream);
  if (Find(stream) != nullptr) streams_.erase(LowerBound(stream));
}

void UnfinishedMessages::ResetByServer(uint32_t stream) {
  EndByServer(stream);
  Stream* const found = Find(stream);
  if (found == nullptr) return;
  found->reset_by_server = true;
  if (found->body >= kBody) streams_.erase(LowerBound(stream));
}

void UnfinishedMessages::EndByServer(uint32_t stream) {
  Stream* const found = Find(stream);
  if (found == nullptr) return;
  SetReceived(*found, 0);
  found->ended_by_server = true;
}

int64_t UnfinishedMessages::largest() const {
  int64_t most = 0;
  for (const Stream& stream : streams_) most = std::max(most, stream.received);
  return most;
}

int64_t UnfinishedMessages::NewestHolding(int64_t bytes) const {
  int64_t count = 0;
  for (auto newest = streams_.rbegin(); newest != streams_.rend() && bytes > 0; ++newest) {
    if (newest->received == 0) continue;
    bytes -= newest->received;
    ++count;
  }
  return count;
}

std::vector<UnfinishedMessages::Stream>::iterator UnfinishedMessages::LowerBound(uint32_t id) {
  return std::lower_bound(streams_.begin(), streams_.end(), id,
                          [](const Stream& stream, uint32_t key) { return stream.id < key; });
}

UnfinishedMessages::Stream* UnfinishedMessages::Find(uint32_t id) {
  const auto found = LowerBound(id);
  return found == streams_.end() || found->id != id ? nullptr : &*found;
}

void UnfinishedMessages::SetReceived(Stream& stream, int64_t bytes) {
  const auto beyond = [](int64_t received) {
    return std::max<int64_t>(0, received - kFirstWindow);
  };
  beyond_first_windows_ += beyond(bytes) - beyond(stream.received);
  stream.received = bytes;
}

}  // namespace attendant::server
