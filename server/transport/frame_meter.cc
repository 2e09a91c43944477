#include "server/transport/frame_meter.h"

#include <algorithm>

namespace attendant::server {
namespace {

// Frame types and a flag (RFC 9113, section 6).
constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kContinuation = 9;
constexpr uint8_t kEndStream = 1;

}  // namespace

bool FrameMeter::Accept(absl::string_view received, int64_t sent, absl::Time now) {
  Save(sent, now);
  while (!received.empty() && !cut_) {
    if (to_skip_ > 0) {
      const size_t skipped = std::min(to_skip_, received.size());
      received.remove_prefix(skipped);
      to_skip_ -= skipped;
      continue;
    }
    const size_t more = std::min(head_.size() - head_bytes_, received.size());
    std::copy_n(received.begin(), more, head_.begin() + head_bytes_);
    received.remove_prefix(more);
    head_bytes_ += more;
    if (head_bytes_ < head_.size()) break;
    head_bytes_ = 0;
    cut_ = !AcceptFrame();
  }
  return !cut_;
}

// Time alone never allows more frames than a new connection has, so an old idle connection cannot
// send a larger flood.
void FrameMeter::Save(int64_t sent, absl::Time now) {
  const double by_time =
      frames_left_ + absl::ToDoubleSeconds(now - seen_at_) * limits_.frames_per_second;
  frames_left_ = std::max(frames_left_, std::min(by_time, limits_.first_frames));
  const double by_answers =
      frames_left_ + static_cast<double>(sent - sent_) / limits_.sent_bytes_per_frame;
  frames_left_ = std::max(frames_left_, std::min(by_answers, limits_.most_saved_frames));
  seen_at_ = now;
  sent_ = sent;
}

bool FrameMeter::AcceptFrame() {
  const size_t length = size_t{head_[0]} << 16 | size_t{head_[1]} << 8 | head_[2];
  const uint8_t type = head_[3], flags = head_[4];
  to_skip_ = length;
  const bool may_end = type == kData || type == kHeaders;
  const bool ends = type == kReset || (may_end && (flags & kEndStream) != 0);
  half_open_calls_ = std::max<int64_t>(0, half_open_calls_ + (type == kHeaders) - ends);
  if (half_open_calls_ > limits_.half_open_calls) return false;
  if (type == kHeaders || type == kContinuation) {
    return AcceptHeaders(type == kContinuation, static_cast<int64_t>(length));
  }
  if (type == kData && (length > 0 || (flags & kEndStream) != 0)) return true;
  return --frames_left_ >= 0;
}

bool FrameMeter::AcceptHeaders(bool continues, int64_t bytes) {
  continuations_ = continues ? continuations_ + 1 : 0;
  block_bytes_ = continues ? block_bytes_ + bytes : bytes;
  return block_bytes_ <= limits_.header_block_bytes && continuations_ <= limits_.continuations;
}

}  // namespace attendant::server
