#include "server/http/http_content.h"

#include <utility>

namespace attendant::server {

HttpContent::HttpContent(std::string text) : HttpContent(std::move(text), 0, 0, 0, nullptr) {}

HttpContent::HttpContent(std::string begun, size_t next, size_t pieces, int64_t bytes, Make make)
    : piece_(std::move(begun)),
      next_(next),
      pieces_(pieces),
      size_(static_cast<int64_t>(piece_.size()) + bytes),
      make_(std::move(make)) {}

int64_t HttpContent::Measure(size_t next, size_t pieces, const Make& make) {
  int64_t bytes = 0;
  std::string piece;
  for (; next < pieces; ++next) {
    piece.clear();
    make(next, &piece);
    bytes += static_cast<int64_t>(piece.size());
  }
  return bytes;
}

size_t HttpContent::Read(char* to, size_t most) {
  size_t written = 0;
  while (written < most) {
    if (at_ == piece_.size()) {
      if (next_ == pieces_) break;
      piece_.clear();
      at_ = 0;
      make_(next_++, &piece_);
    }
    const size_t step = piece_.copy(to + written, most - written, at_);
    at_ += step;
    written += step;
  }
  return written;
}

}  // namespace attendant::server
