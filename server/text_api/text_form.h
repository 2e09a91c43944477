// The JSON of the text routes: ReadText turns a request's body into a TextTask, WriteText a
// TextResult into a response. Independent of HTTP and models.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/http/http_message.h"
#include "server/text_api/text_error.h"
#include "server/text_api/text_task.h"

namespace attendant::server {

struct TextLimits {
  size_t texts = 2048;  // per request
  // Code points of a text, or ids of an input, including those that truncation removes.
  size_t text_characters = 200'000;
};

struct TextRequest {
  std::string_view body;
  std::string model = {};  // from the path /models/NAME/…; if empty, the body may name one
  TextLimits limits = {};
  // Returns the purpose of a model, or of the only model if the name is empty: kVectors, kSparse,
  // kScores or kEntities. Called at most once, by routes that follow the model's purpose ("/").
  std::function<absl::StatusOr<TextWish>(const std::string& model)> main_wish = {};
};

// A task and its result, for a response that is written while it is sent.
struct DoneText {
  TextTask task;
  TextResult result;

  size_t inputs() const { return task.inputs.size(); }
  absl::Span<const float> Row(size_t index) const {
    const auto width = static_cast<size_t>(result.width);
    return absl::MakeConstSpan(result.numbers).subspan(index * width, width);
  }
};

// Writes the response to a request, from members that it has kept. The result's numbers are finite.
using TextWriter = std::function<HttpAnswer(std::shared_ptr<const DoneText> done)>;

// Ends a model's name in requests of Ollama's clients, which may omit it.
inline constexpr char kOllamaTag[] = ":latest";

class Members;

// A POST route.
struct TextRoute {
  const char* path;  // at the root and below /models/NAME; "/" also means /models/NAME
  const char* name;  // for metrics and logs
  ErrorStyle errors;
  // Fills the task, with `model` already set. Returns the members' errors. If null, the route of
  // the model's purpose applies.
  TextWriter (*read)(Members& members, TextTask& task);
};

const std::vector<TextRoute>& TextRoutes();

// A parsed request.
struct TextForm {
  TextTask task;
  TextWriter write;
};

// Errors have a TextErrorKind, except those of `main_wish`. The body is no longer needed
// afterwards.
absl::StatusOr<TextForm> ReadText(const TextRoute& route, const TextRequest& request);

// A large response has `content`, which keeps the result and writes it while it is sent, with a
// known size. Returns kFailed if the result contains numbers that JSON cannot represent.
absl::StatusOr<HttpAnswer> WriteText(TextForm form, TextResult result);

HttpAnswer ModelListAnswer(const std::vector<std::string>& names);     // GET /v1/models
HttpAnswer ModelAnswer(const std::string& name);                       // GET /v1/models/NAME
HttpAnswer OllamaModelsAnswer(const std::vector<std::string>& names);  // GET /api/tags
HttpAnswer OllamaVersionAnswer(const std::string& version);            // GET /api/version
HttpAnswer OpenApiAnswer();                                            // GET /openapi.json

}  // namespace attendant::server
