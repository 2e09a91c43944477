#include "server/text_calls/text_server.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/models/model_lookup.h"
#include "server/rest/call_start.h"
#include "server/rest/rest_server.h"
#include "server/tensors/status_mapping.h"
#include "server/text_calls/text_call.h"
#include "server/text_calls/text_models.h"
#include "server/text_calls/text_path.h"

namespace attendant::server {
namespace {

// The second one is sent by OpenAI's clients.
constexpr const char* kTimeoutHeaders[] = {"x-request-timeout", "x-stainless-read-timeout"};

absl::StatusOr<absl::Duration> TimeoutOf(const HttpRequest& request) {
  absl::Duration timeout = absl::InfiniteDuration();
  for (const char* name : kTimeoutHeaders) {
    const std::string text = request.Header(name);
    if (text.empty()) continue;
    double seconds;
    if (!absl::SimpleAtod(text, &seconds) || !(seconds > 0)) {
      return InvalidMember(name, "seconds above 0", Quote(text));
    }
    timeout = std::min(timeout, absl::Seconds(seconds));
  }
  return timeout;
}

// Returns the API of an unknown path that belongs to the text APIs, or that ends like one of their
// paths because the client's base URL is wrong: /base/v2/embed.
std::optional<ErrorStyle> ApiOf(const HttpRequest& request) {
  const std::string_view path = request.path;
  if (path == "/v1" || path.starts_with("/v1/") || path.starts_with("/v3/") ||
      path.starts_with("/openai/")) {
    return ErrorStyle::kOpenAi;
  }
  if (path.starts_with("/api/")) return ErrorStyle::kOllama;
  if (request.method != "POST" || path.starts_with("/v2/models/")) return std::nullopt;
  const auto unserved = [](const std::string&) { return false; };
  const auto read = ParseTextPath(std::string("/models").append(path), unserved);
  if (!read || read->route == nullptr || read->route->path == std::string_view("/")) {
    return std::nullopt;
  }
  return read->errors;
}

// Like Authorize, but the token may be in Azure's header.
absl::StatusOr<std::string> AuthorizeText(const HttpRequest& request,
                                          const ServerSecrets& secrets) {
  const std::string key = request.authorization.empty() ? request.Header("api-key") : "";
  if (key.empty()) return Authorize(request, secrets);
  HttpRequest with_key = request;
  with_key.authorization = absl::StrCat("Bearer ", key);
  return Authorize(with_key, secrets);
}

absl::Status UnknownPath(std::string_view path) {
  const bool first_of_kserve = path.find(":predict") != path.npos;
  return TextError(
      TextErrorKind::kNoRoute,
      absl::StrCat("path: not found (", Quote(std::string(path)), "); ",
                   first_of_kserve ? "use version 2 of KServe's protocol, /v2/models/NAME/infer"
                                   : "check the base URL, or see /openapi.json for all paths"));
}

HttpAnswer RefusedVerb(const TextPath& path, std::string_view method) {
  const std::string allow = path.route == nullptr ? "GET, HEAD" : "POST";
  HttpAnswer answer = TextErrorAnswer(
      path.errors,
      TextError(TextErrorKind::kNoMethod,
                absl::StrCat("expected the method ", allow, "; got ", Quote(std::string(method)))));
  answer.allow = allow;
  return answer;
}

HttpAnswer AnswerPage(const TextPath& path, const std::string& version,
                      const ServiceContext& service) {
  if (path.page == TextPage::kModels) return ModelListAnswer(TextModelNames(service.models));
  if (path.page == TextPage::kOllamaModels) {
    return OllamaModelsAnswer(TextModelNames(service.models));
  }
  if (path.page == TextPage::kOllamaVersion) return OllamaVersionAnswer(version);
  const bool lists = path.page == TextPage::kModel;
  const auto model = ChooseTextModel(service.models, path.model, {TextWish::kTokens});
  if (!model.ok()) return TextErrorAnswer(path.errors, model.status());
  const std::string name = path.model.empty() ? (*model)->name : path.model;
  if (lists) return ModelAnswer(name);
  return InfoAnswer(**model, name, service.limits, version);
}

}  // namespace

HttpStart StartHttpCall(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply,
                        const ServerSecrets& secrets, const std::string& version,
                        const MethodContext* context) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (request.path == "/" && reads) return std::monostate();  // the page's
  const std::optional<TextPath> path =
      ParseTextPath(request.path, [context](const std::string& name) {
        return context != nullptr && FindModel(context->service.models, name).ok();
      });
  if (!path) {
    const std::optional<ErrorStyle> api = ApiOf(request);
    if (!api) return StartRestCall(request, reply, secrets, context);
    return Refuse(TextErrorAnswer(*api, UnknownPath(request.path)), request);
  }
  if (path->route == nullptr ? !reads : request.method != "POST") {
    return Refuse(RefusedVerb(*path, request.method), request);
  }
  const auto error_answer = [style = path->errors](const absl::Status& error,
                                                   absl::Duration retry_after) {
    return TextErrorAnswer(style, error, retry_after);
  };
  if (reads && request.has_body) {
    return TextErrorAnswer(path->errors,
                           absl::OutOfRangeError("expected a request without a body"));
  }
  const auto refuse = [&](const absl::Status& status) {
    return Refuse(TextErrorAnswer(path->errors, status), request);
  };
  if (path->route == nullptr && path->page == TextPage::kOpenApi) return OpenApiAnswer();
  const bool ready = context != nullptr && context->health.Find("").value_or(false);
  if (path->route == nullptr && path->page == TextPage::kHealth) {
    return ready ? HttpStart(HttpAnswer{200})
                 : refuse(absl::UnavailableError("the server is not ready"));
  }
  const absl::StatusOr<std::string> token = AuthorizeText(request, secrets);
  if (!token.ok()) return refuse(token.status());
  if (context == nullptr) return refuse(absl::UnavailableError("the server is starting"));
  if (path->route == nullptr) return AnswerPage(*path, version, context->service);
  const absl::StatusOr<absl::Duration> timeout = TimeoutOf(request);
  if (!timeout.ok()) return refuse(timeout.status());
  return StartCall({request, context->service, path->route->name, *token, error_answer}, reply,
                   [&](BodyCallArgs entry) {
                     return std::make_shared<TextCall>(std::move(entry), *path->route, path->model,
                                                       *timeout);
                   });
}

}  // namespace attendant::server
