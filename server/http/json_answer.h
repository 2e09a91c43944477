// Answers in JSON that are made piece by piece.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/types/span.h"
#include "server/http/http_message.h"

namespace attendant::server {

// Appends a finite number: the shortest decimals that give the same float32 again; -0 as "-0.0",
// because many readers take "-0" for an integer.
void AppendNumber(float number, std::string* to);
void AppendNumbers(absl::Span<const float> numbers, std::string* to);  // "[1,2.5]"
// Appends the bytes of little-endian float32 in base64, in quotes.
void AppendBase64(absl::Span<const float> numbers, std::string* to);

HttpAnswer JsonBody(std::string body);

// The answer `head`, `elements` elements separated by commas, and `tail`. `append` appends an
// element, in any order and always the same. Large answers keep it and make elements while they are
// sent, after making all of them once to measure them.
HttpAnswer ListAnswer(const std::string& head, size_t elements,
                      std::function<void(size_t index, std::string* to)> append,
                      const std::string& tail);

}  // namespace attendant::server
