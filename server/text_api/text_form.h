// The JSON of the text APIs' routes: ReadText reads a request's body to a TextTask, and WriteText
// writes the answer of its TextResult. No HTTP and no model here.
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
  size_t texts = 2048;  // inputs of a request
  // Code points of a text, or ids of an input. Those that truncation cuts off count.
  size_t text_characters = 200'000;
  // Inputs that are too long for the model are cut where a request does not say.
  bool truncate = true;
};

struct TextRequest {
  std::string_view body;
  std::string model = {};  // that the path names, /models/NAME/…; empty: the body may name one
  TextLimits limits = {};
  // Returns what a model is for, or the only model if the name is empty: kVectors, kSparse, kScores
  // or kEntities. Called by routes that do whatever the model is for ("/") at most once.
  std::function<absl::StatusOr<TextWish>(const std::string& model)> main_wish = {};
};

// A task and its result, for an answer that is written while it is sent.
struct DoneText {
  TextTask task;
  TextResult result;

  size_t inputs() const { return task.inputs.size(); }
  absl::Span<const float> Row(size_t index) const {
    const auto width = static_cast<size_t>(result.width);
    return absl::MakeConstSpan(result.numbers).subspan(index * width, width);
  }
};

// Writes the answer to a request whose members it has kept. The numbers of the result are finite.
using TextWriter = std::function<HttpAnswer(std::shared_ptr<const DoneText> done)>;

class Members;

// A route of POST.
struct TextRoute {
  const char* path;  // at the root, and below /models/NAME; "/" is /models/NAME itself too
  const char* name;  // for metrics and logs
  ErrorStyle errors;
  // Fills the task, whose `model` is set. Errors are those of the members. Null: as the route of
  // what the model is for does.
  TextWriter (*read)(Members& members, TextTask& task);
};

const std::vector<TextRoute>& TextRoutes();

// A request that has been read.
struct TextForm {
  TextTask task;
  TextWriter write;
};

// Errors have a TextErrorKind, except those of `main_wish`. The body is not needed afterwards.
absl::StatusOr<TextForm> ReadText(const TextRoute& route, const TextRequest& request);

// A large answer has `content`, which keeps the result and writes it while it is sent; its size is
// known. kFailed: the result has numbers that JSON does not have.
absl::StatusOr<HttpAnswer> WriteText(TextForm form, TextResult result);

// A model as /info and /v1/models describe it.
struct TextModelFacts {
  std::string name;
  std::string dtype;  // that it is computed in, "f32"
  TextWish main = TextWish::kVectors;
  std::string pooling = {};              // of kVectors, "mean"
  std::vector<std::string> labels = {};  // of kScores and kEntities; kScores with one: a reranker
  int64_t max_input_length = 0;          // tokens
  int64_t max_batch_tokens = 0;
};

struct TextServerFacts {
  std::string version;
  int64_t max_concurrent_requests = 0;
};

HttpAnswer ModelListAnswer(const std::vector<std::string>& names);  // GET /v1/models
HttpAnswer ModelAnswer(const std::string& name);                    // GET /v1/models/NAME
HttpAnswer InfoAnswer(const TextModelFacts& model, const TextServerFacts& server,
                      const TextLimits& limits);  // GET /info
HttpAnswer OpenApiAnswer();                       // GET /openapi.json

}  // namespace attendant::server
