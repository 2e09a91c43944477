#include "server/transport/frame_reader.h"

#include <algorithm>

namespace attendant::server {

bool FrameReader::Read(absl::string_view& bytes, absl::string_view& payload) {
  payload = bytes.substr(0, to_come_);
  bytes.remove_prefix(payload.size());
  to_come_ -= payload.size();
  if (!payload.empty()) return false;
  const size_t more = std::min(header_.size() - header_bytes_, bytes.size());
  std::copy_n(bytes.begin(), more, header_.begin() + header_bytes_);
  bytes.remove_prefix(more);
  header_bytes_ += more;
  if (header_bytes_ < header_.size()) return false;
  header_bytes_ = 0;
  frame_.length = size_t{header_[0]} << 16 | size_t{header_[1]} << 8 | header_[2];
  frame_.type = header_[3];
  frame_.flags = header_[4];
  frame_.stream = uint32_t{header_[5]} << 24 | uint32_t{header_[6]} << 16 |
                  uint32_t{header_[7]} << 8 | uint32_t{header_[8]};
  frame_.stream &= 0x7fffffff;  // the first bit is reserved
  to_come_ = frame_.length;
  return true;
}

}  // namespace attendant::server
