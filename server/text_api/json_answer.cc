#include "server/text_api/json_answer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace attendant::server {
namespace {

// Bytes of an answer that are kept as they are.
constexpr size_t kMostKept = 256 << 10;

// A list of which the text of the first elements has been made.
class ListContent final : public HttpContent {
 public:
  using Append = std::function<void(size_t, std::string*)>;

  ListContent(std::string begun, size_t next, size_t elements, Append append, std::string tail)
      : piece_(std::move(begun)),
        next_(next),
        elements_(elements),
        append_(std::move(append)),
        tail_(std::move(tail)),
        size_(static_cast<int64_t>(piece_.size())) {
    std::string piece;
    for (size_t i = next; i <= elements; ++i) {
      piece.clear();
      Make(i, &piece);
      size_ += static_cast<int64_t>(piece.size());
    }
  }

  int64_t size() const override { return size_; }

  size_t Read(char* to, size_t most) override {
    size_t written = 0;
    while (written < most) {
      if (at_ == piece_.size()) {
        if (next_ > elements_) break;
        piece_.clear();
        at_ = 0;
        Make(next_++, &piece_);
      }
      const size_t step = std::min(most - written, piece_.size() - at_);
      std::memcpy(to + written, piece_.data() + at_, step);
      at_ += step;
      written += step;
    }
    return written;
  }

 private:
  void Make(size_t index, std::string* to) const {
    if (index == elements_) {
      *to += tail_;
      return;
    }
    if (index > 0) *to += ',';
    append_(index, to);
  }

  std::string piece_;
  size_t at_ = 0;  // of the piece
  size_t next_;    // the element after the piece; `elements_` is the tail
  const size_t elements_;
  const Append append_;
  const std::string tail_;
  int64_t size_;
};

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
  HttpAnswer answer = JsonBody("");
  answer.content =
      std::make_shared<ListContent>(std::move(text), made, elements, std::move(append), tail);
  return answer;
}

}  // namespace attendant::server
