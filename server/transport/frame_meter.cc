#include "server/transport/frame_meter.h"

#include <algorithm>

namespace attendant::server {

bool FrameMeter::Receive(absl::string_view bytes, absl::Time now) {
  Save(now);
  while (!bytes.empty() && !cut_) {
    absl::string_view payload;
    const bool begins = received_frames_.Read(bytes, payload);
    const FrameReader::Frame& frame = received_frames_.frame();
    if (begins) cut_ = !AcceptFrame(frame);
    if (frame.type == kDataFrame) messages_.Receive(frame.stream, payload);
    // Only once the last frame is complete, because its message is not complete before.
    if (frame.ends_stream() && received_frames_.complete()) messages_.EndByClient(frame.stream);
  }
  return !cut_;
}

void FrameMeter::Send(absl::string_view bytes) {
  sent_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    absl::string_view payload;
    if (!sent_frames_.Read(bytes, payload)) continue;
    const FrameReader::Frame& frame = sent_frames_.frame();
    if (frame.type == kResetFrame) {
      messages_.ResetByServer(frame.stream);
    } else if (frame.ends_stream()) {
      messages_.EndByServer(frame.stream);
    }
  }
}

// Time never allows more frames than a new connection has, so that an old idle connection cannot
// send a larger flood.
void FrameMeter::Save(absl::Time now) {
  const double by_time =
      frames_left_ + absl::ToDoubleSeconds(now - seen_at_) * limits_.frames_per_second;
  frames_left_ = std::max(frames_left_, std::min(by_time, limits_.first_frames));
  const double by_answers =
      frames_left_ + static_cast<double>(sent_ - seen_sent_) / limits_.sent_bytes_per_frame;
  frames_left_ = std::max(frames_left_, std::min(by_answers, limits_.most_saved_frames));
  seen_at_ = now;
  seen_sent_ = sent_;
}

bool FrameMeter::AcceptFrame(const FrameReader::Frame& frame) {
  if (frame.type == kHeadersFrame || frame.type == kContinuationFrame) {
    if (frame.type == kHeadersFrame) {
      if (!messages_.Begin(frame.stream)) return false;
      window_updates_left_ += limits_.window_updates_per_call;
    }
    return AcceptHeaders(frame.type == kContinuationFrame, static_cast<int64_t>(frame.length));
  }
  if (frame.type == kDataFrame && (frame.length > 0 || frame.ends_stream())) return true;
  if (frame.type == kWindowUpdateFrame && window_updates_left_ > 0) {
    --window_updates_left_;
    return true;
  }
  return --frames_left_ >= 0;
}

bool FrameMeter::AcceptHeaders(bool continues, int64_t bytes) {
  continuations_ = continues ? continuations_ + 1 : 0;
  block_bytes_ = continues ? block_bytes_ + bytes : bytes;
  return block_bytes_ <= limits_.header_block_bytes && continuations_ <= limits_.continuations;
}

}  // namespace attendant::server
