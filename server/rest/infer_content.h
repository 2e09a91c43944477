// MakeInferContent, the response to an inference request.
#pragma once

#include <vector>

#include "server/http/http_message.h"
#include "server/inference/infer.h"

namespace attendant::server {

// The header with the size of the JSON document in a body that also has binary tensors.
inline constexpr char kJsonLength[] = "Inference-Header-Content-Length";

// Returns a response with a JSON document, followed by the binary outputs in little-endian order.
// The text is generated while it is sent, so that it takes no memory besides the tensors. Floats
// are the shortest decimals that parse to the same float32; NaN and infinity become null. `binary`
// selects, for each output, whether it is sent as bytes; JSON outputs are FP32. Measures the text,
// which takes about as long as generating it.
HttpAnswer MakeInferContent(InferAnswer answer, const std::vector<bool>& binary);

}  // namespace attendant::server
