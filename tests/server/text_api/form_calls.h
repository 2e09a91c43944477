// Calls of the forms of text APIs, as a route makes them.
#pragma once

#include <memory>
#include <string>

#include "server/text_api/text_form.h"

namespace attendant::server {

const TextRoute& RouteOf(const std::string& path);

// A request whose body is kept.
struct FormCall {
  explicit FormCall(const std::string& path, std::string text = "{}")
      : route(RouteOf(path)), form(route.make()), body(std::move(text)) {
    request.body = body;
  }

  absl::StatusOr<TextTask> Read() { return form->Read(request); }
  // "422 " and the body of the error that Read returns.
  std::string Refused();
  // The body of the answer to the body, which has to be read well.
  std::string Answered(TextResult result);

  const TextRoute& route;
  std::unique_ptr<TextForm> form;
  std::string body;
  TextRequest request;
};

// The body of an answer; its content is read in pieces of at most `most` bytes.
std::string BodyOf(const HttpAnswer& answer, size_t most = 1000);

// A result with vectors, tokens of two for each, by a model "m".
TextResult Vectors(int64_t width, std::vector<float> numbers);

}  // namespace attendant::server
