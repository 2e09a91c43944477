#include "server/http/json_answer.h"

#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "server/http/http_content.h"

namespace attendant::server {
namespace {

// Bytes of an answer that are kept as they are.
constexpr size_t kMostKept = 256 << 10;

}  // namespace

void AppendNumber(float number, std::string* to) {
  char text[32];
  if (number == 0 && std::signbit(number)) {
    *to += "-0.0";
    return;
  }
  const char* end = std::to_chars(text, text + sizeof text, number).ptr;
  to->append(text, static_cast<size_t>(end - text));
}

void AppendNumbers(absl::Span<const float> numbers, std::string* to) {
  *to += '[';
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) *to += ',';
    AppendNumber(numbers[i], to);
  }
  *to += ']';
}

void AppendBase64(absl::Span<const float> numbers, std::string* to) {
  const auto* bytes = reinterpret_cast<const char*>(numbers.data());
  *to += '"';
  *to += absl::Base64Escape(absl::string_view(bytes, numbers.size() * sizeof(float)));
  *to += '"';
}

HttpAnswer JsonBody(std::string body) {
  HttpAnswer answer;
  answer.body = std::move(body);
  answer.content_type = "application/json";
  return answer;
}

HttpAnswer ListAnswer(const std::string& head, size_t elements,
                      std::function<void(size_t, std::string*)> append, const std::string& tail) {
  std::string text = head;
  size_t made = 0;
  for (; made < elements && text.size() <= kMostKept; ++made) {
    if (made > 0) text += ',';
    append(made, &text);
  }
  if (made == elements) return JsonBody(text + tail);
  const auto make = [elements, append = std::move(append), tail](size_t index, std::string* to) {
    if (index == elements) {
      *to += tail;
      return;
    }
    if (index > 0) *to += ',';
    append(index, to);
  };
  HttpAnswer answer = JsonBody("");
  answer.content = std::make_shared<HttpContent>(
      std::move(text), made, elements + 1, HttpContent::Measure(made, elements + 1, make), make);
  return answer;
}

}  // namespace attendant::server
