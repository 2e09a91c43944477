// HttpContent, the body of an answer that is made piece by piece while it is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace attendant::server {

// One thread at a time.
class HttpContent {
 public:
  // Appends a piece, always the same.
  using Make = std::function<void(size_t index, std::string* to)>;

  explicit HttpContent(std::string text);
  // The body is `begun` and the pieces from `next` to `pieces`, which have `bytes` together.
  HttpContent(std::string begun, size_t next, size_t pieces, int64_t bytes, Make make);

  // Makes the pieces from `next` to `pieces` and returns how many bytes they have together.
  static int64_t Measure(size_t next, size_t pieces, const Make& make);

  int64_t size() const { return size_; }  // bytes in all
  // Writes the next bytes of the body to `to`, at least one of them and at most `most`, and returns
  // how many. Not called once all have been read.
  size_t Read(char* to, size_t most);

 private:
  std::string piece_;
  size_t at_ = 0;  // of the piece
  size_t next_;    // the piece after it
  const size_t pieces_;
  const int64_t size_;
  const Make make_;
};

}  // namespace attendant::server
