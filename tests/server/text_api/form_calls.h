// Calls of the forms of text APIs, as a route makes them.
#pragma once

#include <string>
#include <vector>

#include "server/text_api/text_form.h"

namespace attendant::server {

const TextRoute& RouteOf(const std::string& path);

// A request whose body is kept.
struct FormCall {
  explicit FormCall(const std::string& path, std::string text = "{}")
      : route(RouteOf(path)), body(std::move(text)) {
    request.body = body;
  }

  absl::StatusOr<TextTask> Read() const;
  absl::StatusOr<HttpAnswer> Write(TextResult result) const;
  // "422 " and the body of the error that Read returns.
  std::string Refused();
  // The body of the answer to the body, which has to be read well.
  std::string Answered(TextResult result);

  const TextRoute& route;
  std::string body;
  TextRequest request;
};

// The body of an answer; its content is read in pieces of at most `most` bytes.
std::string BodyOf(const HttpAnswer& answer, size_t most = 1000);

// A result with vectors, tokens of two for each, by a model "m".
TextResult Vectors(int64_t width, std::vector<float> numbers);

}  // namespace attendant::server
