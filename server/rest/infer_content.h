// MakeInferContent: the body of the answer to an inference request.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/http/http_content.h"
#include "server/inference/infer.h"

namespace attendant::server {

// A JSON document with the outputs that go as JSON, and behind it the others as little-endian
// bytes. The text is made while it is sent, so that no more memory is taken than the tensors have.
// Floats are the shortest decimals that give the same float32 again; NaN and infinity, which JSON
// does not have, are null.
struct InferContent {
  std::shared_ptr<HttpContent> content;
  int64_t json_bytes = 0;
  bool has_binary = false;
};

// `binary` says of each output whether it goes as bytes. Outputs as JSON are FP32. Measures the
// text, which takes about as long as making it.
InferContent MakeInferContent(InferAnswer answer, const std::vector<bool>& binary);

}  // namespace attendant::server
