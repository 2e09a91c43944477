#include "server/rest/rest_server.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/inference/inference_methods.h"
#include "server/rest/call_start.h"
#include "server/rest/infer_call.h"
#include "server/rest/infer_content.h"
#include "server/rest/rest_answer.h"
#include "server/rest/rest_path.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

HttpAnswer RefusedVerb(const RestPath& path) {
  std::string allow(path.verb);
  if (allow == "GET") allow += ", HEAD";
  HttpAnswer answer =
      JsonAnswer({{"error", absl::StrCat("expected the method ", allow)}}, /*status=*/405);
  answer.allow = std::move(allow);
  return answer;
}

absl::Status UnknownPath(std::string_view path) {
  return NotFound("path", Quote(std::string(path)),
                  "infer at /v2/models/NAME/infer; POST /v2/repository/index lists the models");
}

HttpAnswer ReadyAnswer(bool ready, RestJson document) {
  document["ready"] = ready;
  return JsonAnswer(document, ready ? 200 : 503);
}

template <typename Request>
Request About(const RestPath& path) {
  Request request;
  request.set_name(path.model);
  request.set_version(path.version);
  return request;
}

// `make` turns the response into the document of the answer.
template <typename Response, typename Make>
HttpAnswer AnswerOf(const absl::StatusOr<Response>& response, Make make) {
  return response.ok() ? JsonAnswer(make(*response)) : ErrorAnswer(response.status());
}

// {"ready": true} requests only models that are ready; an empty body means {}.
HttpAnswer AnswerIndex(const std::string& body, const MethodContext& context) {
  inference::RepositoryIndexRequest request;
  if (!body.empty()) {
    if (body.size() == kMostHandledBytes) {
      return ErrorAnswer(absl::OutOfRangeError("the body: expected less than 64 KiB; got more"));
    }
    const auto document = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
    if (!document.is_object()) {
      return ErrorAnswer(InvalidField("the body", "a JSON object", "something else"));
    }
    const auto ready = document.find("ready");
    const bool given = ready != document.end() && !ready->is_null();
    if (given && !ready->is_boolean()) {
      return ErrorAnswer(InvalidField("ready", "true or false", "something else"));
    }
    request.set_ready(given && ready->get<bool>());
  }
  return AnswerOf(RepositoryIndex(context, request),
                  [](const auto& response) { return ToJson(response)["models"]; });
}

HttpAnswer AnswerQuick(const RestPath& path, const MethodContext& context) {
  const auto all = [](const auto& response) { return ToJson(response); };
  switch (path.method) {
    case RestMethod::kServerMetadata:
      return AnswerOf(ServerMetadata(context, {}), [](auto response) {
        response.add_extensions("binary_tensor_data");
        return ToJson(response);
      });
    case RestMethod::kModelMetadata:
      return AnswerOf(ModelMetadata(context, About<inference::ModelMetadataRequest>(path)), all);
    case RestMethod::kModelReady: {
      const auto response = ModelReady(context, About<inference::ModelReadyRequest>(path));
      return ReadyAnswer(response.ok() && response->ready(), {{"name", path.model}});
    }
    case RestMethod::kModelConfig:
      return AnswerOf(ModelConfig(context, About<inference::ModelConfigRequest>(path)),
                      [](const auto& response) { return ToJson(response.config()); });
    case RestMethod::kModelStatistics:
      return AnswerOf(ModelStatistics(context, About<inference::ModelStatisticsRequest>(path)),
                      all);
    default:  // kSharedMemoryStatus: there is none
      return JsonAnswer(RestJson::array());
  }
}

// `token` is the name of the caller's.
HttpStart Start(const HttpRequest& request, const RestPath& path, const std::string& token,
                const std::shared_ptr<HttpReply>& reply, const MethodContext& context) {
  switch (path.method) {
    case RestMethod::kRefused:
      return Refuse(ErrorAnswer(absl::UnimplementedError(path.why)), request);
    case RestMethod::kModelInfer:
      return StartCall({request, context.service, "ModelInfer", token, ErrorAnswer}, reply,
                       [&](BodyCallArgs entry) {
                         return std::make_shared<InferCall>(std::move(entry), path.model,
                                                            path.version,
                                                            LengthIn(request, kJsonLength));
                       });
    case RestMethod::kRepositoryIndex:
      return [&context](const std::string& body) { return AnswerIndex(body, context); };
    case RestMethod::kSharedMemoryUnregister:
      return [](const std::string&) { return JsonAnswer(RestJson::object()); };
    default:
      return AnswerQuick(path, context);
  }
}

}  // namespace

HttpStart StartRestCall(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply,
                        const ServerSecrets& secrets, const MethodContext* context) {
  const bool ours =
      request.path == "/v2" ||
      absl::StartsWith(absl::string_view(request.path.data(), request.path.size()), "/v2/");
  if (!ours) return std::monostate();
  const std::optional<RestPath> path = ParseRestPath(request.path);
  if (!path) return Refuse(ErrorAnswer(UnknownPath(request.path)), request);
  if (request.method != path->verb && !(path->verb == "GET" && request.method == "HEAD") &&
      path->method != RestMethod::kRefused) {
    return Refuse(RefusedVerb(*path), request);
  }
  if (path->verb == "GET" && request.has_body && path->method != RestMethod::kRefused) {
    return ErrorAnswer(absl::OutOfRangeError("expected a request without a body"));
  }
  if (path->method == RestMethod::kServerLive) return JsonAnswer({{"live", true}});
  if (path->method == RestMethod::kServerReady) {
    return ReadyAnswer(context != nullptr && context->health.Find("").value_or(false),
                       RestJson::object());
  }
  const absl::StatusOr<std::string> token = Authorize(request, secrets);
  if (!token.ok()) return Refuse(ErrorAnswer(token.status()), request);
  if (context == nullptr) {
    return Refuse(ErrorAnswer(absl::UnavailableError("the server is starting")), request);
  }
  return Start(request, *path, *token, reply, *context);
}

}  // namespace attendant::server
