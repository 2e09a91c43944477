// JSON responses generated piece by piece.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/types/span.h"
#include "server/http/http_message.h"

namespace attendant::server {

// Appends a finite number as the shortest decimals that parse to the same float32; -0 as "-0.0",
// because many readers take "-0" for an integer.
void AppendNumber(float number, std::string* to);
void AppendNumbers(absl::Span<const float> numbers, std::string* to);  // "[1,2.5]"
// Appends little-endian float32 bytes as a quoted base64 string.
void AppendBase64(absl::Span<const float> numbers, std::string* to);

HttpAnswer JsonBody(std::string body);

// Returns `head`, `elements` elements separated by commas, and `tail`. `append` appends an element,
// in any order and with the same result each time. Large responses generate elements while they are
// sent, after generating all once to measure them.
HttpAnswer ListAnswer(const std::string& head, size_t elements,
                      std::function<void(size_t index, std::string* to)> append,
                      const std::string& tail);

}  // namespace attendant::server
