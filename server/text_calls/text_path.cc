#include "server/text_calls/text_path.h"

#include <tuple>
#include <utility>

namespace attendant::server {
namespace {

constexpr std::string_view kOfModel = "/models/", kModelPage = "/v1/models/";
// Ends a path of KServe's first protocol, which is not served.
constexpr std::string_view kPredict = ":predict";

// Where KServe's Hugging Face server and Azure have OpenAI's paths.
constexpr std::string_view kOpenAi = "/openai", kOpenAiPrefix = "/openai/v1/";
// Azure's paths of a model.
constexpr std::string_view kDeployments = "/openai/deployments/",
                           kAzureModelList = "/openai/models";
// Where OpenVINO Model Server has the paths that OpenAI and Cohere have below /v1.
constexpr std::string_view kOpenVino = "/v3/";
// Lists models at a base URL without /v1. Not below /models/NAME, since names may end with it.
constexpr std::string_view kModelList = "/models";

constexpr std::tuple<std::string_view, TextPage, ErrorStyle> kPages[] = {
    {"/v1/models", TextPage::kModels, ErrorStyle::kOpenAi},
    {"/info", TextPage::kInfo, ErrorStyle::kTei},
    {"/health", TextPage::kHealth, ErrorStyle::kTei},
    {"/ping", TextPage::kHealth, ErrorStyle::kTei},
    {"/openapi.json", TextPage::kOpenApi, ErrorStyle::kTei},
    {"/api/tags", TextPage::kOllamaModels, ErrorStyle::kOllama},
    {"/api/version", TextPage::kOllamaVersion, ErrorStyle::kOllama}};

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

// Calls `found` with each path that there is.
void ForEachPath(const std::function<void(std::string_view, TextPath)>& found) {
  for (const TextRoute& route : TextRoutes()) found(route.path, {&route, {}, route.errors});
  for (const auto& [path, page, errors] : kPages) found(path, {nullptr, page, errors});
}

// `rest` is a name and a path, or a name. Among several readings, the one with a served model wins;
// otherwise the one with the longest path.
std::optional<TextPath> ParseOfModel(std::string_view rest,
                                     const std::function<bool(const std::string&)>& is_served) {
  std::optional<TextPath> best;
  size_t longest = 0;
  bool best_is_served = false;
  ForEachPath([&](std::string_view path, TextPath read) {
    if (path == "/" ? rest.empty() : !EndsWith(rest, path)) return;
    const size_t length = path == "/" ? 0 : path.size();
    read.model = rest.substr(0, rest.size() - length);
    const bool served = is_served(read.model);
    if (best && std::pair(served, length) <= std::pair(best_is_served, longest)) return;
    best = std::move(read);
    longest = length;
    best_is_served = served;
  });
  return best;
}

// "/v3/rerank" is "/v1/rerank". Clients that add a version themselves send "/v3/v1/rerank".
std::string WithoutOpenVino(std::string_view path) {
  path.remove_prefix(kOpenVino.size() - 1);
  const bool has_version = path.starts_with("/v1/") || path.starts_with("/v2/");
  return std::string(has_version ? "" : "/v1").append(path);
}

}  // namespace

std::optional<TextPath> ParseTextPath(std::string_view path,
                                      const std::function<bool(const std::string&)>& is_served) {
  if (path.starts_with(kDeployments)) {
    path.remove_prefix(kDeployments.size());
    std::optional<TextPath> read = ParseOfModel(path, is_served);
    const bool is_openai = read && read->route != nullptr && read->errors == ErrorStyle::kOpenAi;
    return is_openai ? read : std::nullopt;
  }
  if (path.starts_with(kOpenAiPrefix)) path.remove_prefix(kOpenAi.size());
  std::string renamed;
  if (path.starts_with(kOpenVino)) path = renamed = WithoutOpenVino(path);
  if (path == kModelList || path == kAzureModelList) return TextPath{nullptr, TextPage::kModels};
  std::optional<TextPath> exact;
  ForEachPath([&](std::string_view known, TextPath read) {
    if (known == path) exact = std::move(read);
  });
  if (exact) return exact;
  if (EndsWith(path, kPredict)) return std::nullopt;
  if (path.size() > kModelPage.size() && path.substr(0, kModelPage.size()) == kModelPage) {
    return TextPath{nullptr, TextPage::kModel, ErrorStyle::kOpenAi,
                    std::string(path.substr(kModelPage.size()))};
  }
  if (path.substr(0, kOfModel.size()) != kOfModel) return std::nullopt;
  return ParseOfModel(path.substr(kOfModel.size()), is_served);
}

}  // namespace attendant::server
