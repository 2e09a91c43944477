// The paths of text APIs over HTTP.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/text_api/text_form.h"

namespace attendant::server {

// Answers of GET, which need no job.
enum class TextPage { kModels, kModel, kInfo, kHealth, kOpenApi };

struct TextPath {
  const TextRoute* route = nullptr;  // of POST; null: `page` of GET
  TextPage page = TextPage::kHealth;
  std::string model = {};  // that the path names; empty: none

  std::string_view verb() const { return route == nullptr ? "GET" : "POST"; }
};

// Returns nothing if the path is none of a text API. The name of a model may have slashes:
// `is_served` says whether there is one of a name, which decides between several ways to read a
// path.
std::optional<TextPath> ParseTextPath(std::string_view path,
                                      const std::function<bool(const std::string&)>& is_served);

}  // namespace attendant::server
