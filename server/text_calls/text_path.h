// HTTP paths of the text APIs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/text_api/text_form.h"

namespace attendant::server {

// GET responses, which need no job.
enum class TextPage { kModels, kModel, kInfo, kHealth, kOpenApi, kOllamaModels, kOllamaVersion };

struct TextPath {
  const TextRoute* route = nullptr;  // for POST; null for `page`
  TextPage page = TextPage::kHealth;
  ErrorStyle errors = ErrorStyle::kOpenAi;
  std::string model = {};  // from the path, or empty
};

// Returns nullopt for other paths. A model's name may contain slashes; `is_served` resolves
// ambiguous paths by whether a model has a name.
std::optional<TextPath> ParseTextPath(std::string_view path,
                                      const std::function<bool(const std::string&)>& is_served);

}  // namespace attendant::server
