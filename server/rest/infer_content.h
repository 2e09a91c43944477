// MakeInferContent, the body of an inference response.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/http/http_content.h"
#include "server/inference/infer.h"

namespace attendant::server {

// A JSON document, followed by the binary outputs in little-endian order. The text is generated
// while it is sent, so that it takes no memory besides the tensors. Floats are the shortest
// decimals that parse to the same float32; NaN and infinity become null.
struct InferContent {
  std::shared_ptr<HttpContent> content;
  int64_t json_bytes = 0;
  bool has_binary = false;
};

// `binary` selects, for each output, whether it is sent as bytes; JSON outputs are FP32. Measures
// the text, which takes about as long as generating it.
InferContent MakeInferContent(InferAnswer answer, const std::vector<bool>& binary);

}  // namespace attendant::server
