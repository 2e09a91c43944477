// InferContent, the body of the answer to an inference request.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"
#include "server/inference/infer.h"

namespace attendant::server {

// A JSON document with the outputs that go as JSON, and behind it the others as little-endian
// bytes. The text is made while it is sent, so that no more memory is taken than the tensors have.
// Floats are the shortest decimals that give the same float32 again; NaN and infinity, which JSON
// does not have, are null.
class InferContent final : public HttpContent {
 public:
  // `binary` says of each output whether it goes as bytes. Outputs as JSON are FP32. Measures the
  // text, which takes about as long as making it.
  InferContent(InferAnswer answer, const std::vector<bool>& binary);

  int64_t size() const override { return json_bytes_ + binary_bytes_; }
  size_t Read(char* to, size_t most) override;

  int64_t json_bytes() const { return json_bytes_; }
  bool has_binary() const { return has_binary_; }

 private:
  // Some text, and behind it a tensor, as numbers or as it is.
  struct Part {
    std::string text;
    grpc::Slice tensor = {};
    bool as_numbers = false;
  };

  // Into the text of a number with the comma before it, for element `index`.
  static size_t Write(const Part& part, size_t index, char* to);
  static size_t Elements(const Part& part) { return part.tensor.size() / sizeof(float); }
  void Measure();
  // Makes the next piece, which may be empty. Returns false at the end.
  bool NextPiece();

  std::vector<Part> parts_;
  int64_t json_bytes_ = 0;
  int64_t binary_bytes_ = 0;
  bool has_binary_ = false;

  std::string_view piece_;  // of the body, what comes next
  size_t part_ = 0;         // the part behind the piece
  bool in_tensor_ = false;  // the text of the part is done
  size_t element_ = 0;      // of the part's numbers
  char numbers_[4096];
};

}  // namespace attendant::server
