// HttpContent, a response body generated piece by piece while it is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace attendant::server {

// Used by one thread at a time.
class HttpContent {
 public:
  // Appends piece `index`, with the same result each time.
  using Make = std::function<void(size_t index, std::string* to)>;

  explicit HttpContent(std::string text);
  // The body is `begun`, then the pieces from `next` to `pieces`, of `bytes` together.
  HttpContent(std::string begun, size_t next, size_t pieces, int64_t bytes, Make make);

  // Generates the pieces from `next` to `pieces`, and returns their size.
  static int64_t Measure(size_t next, size_t pieces, const Make& make);

  int64_t size() const { return size_; }  // total bytes
  // Writes the next 1..`most` bytes of the body to `to`, and returns how many. Do not call it after
  // the end.
  size_t Read(char* to, size_t most);

 private:
  std::string piece_;
  size_t at_ = 0;  // position in the piece
  size_t next_;    // the following piece
  const size_t pieces_;
  const int64_t size_;
  const Make make_;
};

}  // namespace attendant::server
