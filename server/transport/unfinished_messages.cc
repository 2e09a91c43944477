#include "server/transport/unfinished_messages.h"

#include <algorithm>

namespace attendant::server {
namespace {

// A flag that says whether the message is compressed, and the length, in big-endian order.
constexpr int kPrefixBytes = 5;

}  // namespace

bool UnfinishedMessages::Begin(uint32_t stream) {
  if (streams_.size() == most_streams_ && !streams_.contains(stream)) return false;
  streams_.try_emplace(stream);
  return true;
}

void UnfinishedMessages::Receive(uint32_t stream, absl::string_view data) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.ended_by_server) return;
  Stream& of_data = found->second;
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
  streams_.erase(stream);
}

void UnfinishedMessages::EndByServer(uint32_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  SetReceived(found->second, 0);
  found->second.ended_by_server = true;
}

int64_t UnfinishedMessages::largest() const {
  int64_t most = 0;
  for (const auto& [id, stream] : streams_) most = std::max(most, stream.received);
  return most;
}

int64_t UnfinishedMessages::NewestHolding(int64_t bytes) const {
  int64_t count = 0;
  for (auto newest = streams_.rbegin(); newest != streams_.rend() && bytes > 0; ++newest) {
    if (newest->second.received == 0) continue;
    bytes -= newest->second.received;
    ++count;
  }
  return count;
}

void UnfinishedMessages::SetReceived(Stream& stream, int64_t bytes) {
  const auto beyond = [](int64_t received) {
    return std::max<int64_t>(0, received - kFirstWindow);
  };
  beyond_first_windows_ += beyond(bytes) - beyond(stream.received);
  stream.received = bytes;
}

}  // namespace attendant::server
