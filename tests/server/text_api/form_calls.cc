#include "tests/server/text_api/form_calls.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/http/http_content.h"

namespace attendant::server {

const TextRoute& RouteOf(const std::string& path) {
  return *absl::c_find_if(TextRoutes(), [&](const TextRoute& route) { return route.path == path; });
}

absl::StatusOr<TextTask> FormCall::Read() const {
  ASSIGN_OR_RETURN(TextForm form, ReadText(route, request));
  return std::move(form.task);
}

absl::StatusOr<HttpAnswer> FormCall::Write(TextResult result) const {
  ASSIGN_OR_RETURN(TextForm form, ReadText(route, request));
  return WriteText(std::move(form), std::move(result));
}

std::string FormCall::Refused() {
  const auto task = Read();
  if (task.ok()) return "no error";
  const HttpAnswer answer = TextErrorAnswer(route.errors, task.status());
  return absl::StrCat(answer.status, " ", answer.body);
}

std::string FormCall::Answered(TextResult result) {
  const auto answer = Write(std::move(result));
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return "";
  EXPECT_EQ(answer->status, 200u);
  EXPECT_EQ(answer->content_type, "application/json");
  return BodyOf(*answer);
}

std::string BodyOf(const HttpAnswer& answer, size_t most) {
  if (answer.content == nullptr) return answer.body;
  EXPECT_EQ(answer.body, "");
  std::string all, piece(most, '\0');
  while (static_cast<int64_t>(all.size()) < answer.content->size()) {
    const size_t got = answer.content->Read(piece.data(), most);
    EXPECT_GT(got, 0u);
    if (got == 0) break;
    all.append(piece, 0, got);
  }
  EXPECT_EQ(static_cast<int64_t>(all.size()), answer.content->size());
  return all;
}

TextResult Vectors(int64_t width, std::vector<float> numbers) {
  TextResult result;
  result.model = "m";
  result.width = width;
  result.tokens.assign(numbers.size() / static_cast<size_t>(width), 2);
  result.numbers = std::move(numbers);
  return result;
}

}  // namespace attendant::server
