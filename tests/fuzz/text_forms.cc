#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/text_api/text_form.h"
#include "tests/fuzz/fuzz_target.h"

namespace attendant {

std::string FuzzTextForm(absl::string_view input) {
  if (input.empty()) return "";
  const auto& routes = server::TextRoutes();
  const auto choice = static_cast<uint8_t>(input[0]);
  const server::TextRoute& route = routes[choice % routes.size()];
  const auto main = static_cast<server::TextWish>(choice / routes.size() % 5);
  input.remove_prefix(1);
  server::TextRequest request = {.body = {input.data(), input.size()}};
  request.limits = {.texts = 8, .text_characters = 64};
  request.main_wish = [&](const std::string&) { return main; };
  const auto form = server::ReadText(route, request);
  if (!form.ok()) {
    const server::HttpAnswer answer = server::TextErrorAnswer(route.errors, form.status());
    const bool refused = answer.status >= 400 && answer.status < 500;
    return refused && nlohmann::json::accept(answer.body) ? "" : form.status().ToString();
  }
  // A sentence that others are compared with comes on top.
  const server::TextTask& task = form->task;
  if (task.inputs.empty() || task.inputs.size() > request.limits.texts + 1) {
    return absl::StrCat(task.inputs.size(), " inputs");
  }
  for (const server::TextInput& one : task.inputs) {
    if (one.ids && (one.ids->empty() || !one.text.empty() || one.pair)) return "two kinds of input";
    if (one.text.size() > 4 * request.limits.text_characters) return "a text beyond the limit";
  }
  return nlohmann::json::accept(input.begin(), input.end()) ? "" : "the body is not JSON";
}

}  // namespace attendant
