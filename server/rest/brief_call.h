// BriefCall, a request whose body says little, or nothing any more.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/http_call.h"

namespace attendant::server {

// Keeps at most 64 KiB of the body, and drops the rest.
class BriefCall final : public HttpCall {
 public:
  static constexpr size_t kMostBytes = 64 << 10;

  // `answer` gets the body.
  explicit BriefCall(std::function<HttpAnswer(const std::string& body)> answer)
      : answer_(std::move(answer)) {}

  bool brief() const override { return true; }
  HttpAnswer Refuse(const absl::Status&) override { return {429}; }
  void OnBody(std::string_view bytes) override {
    body_.append(bytes.substr(0, kMostBytes - body_.size()));
  }
  std::optional<HttpAnswer> OnRequest() override { return answer_(body_); }
  void OnGone() override {}
  void OnEnd(End) override {}

 private:
  const std::function<HttpAnswer(const std::string&)> answer_;
  std::string body_;
};

}  // namespace attendant::server
