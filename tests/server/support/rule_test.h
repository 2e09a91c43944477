// RuleTest, the base of tests of the rules for a request's fields: each test spoils a valid request
// and expects a refusal.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "tests/server/support/test_server.h"

namespace attendant::server {

template <typename Request>
struct Rule {
  const char* name;
  std::function<void(Request&)> spoil;
  std::string message;
  grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
};

template <typename Request>
void PrintTo(const Rule<Request>& rule, std::ostream* out) {
  *out << rule.name;
}

template <typename Request>
std::string NameOfRule(const ::testing::TestParamInfo<Rule<Request>>& rule) {
  return rule.param.name;
}

// All tests of a suite use the same server.
template <typename Request>
class RuleTest : public ::testing::TestWithParam<Rule<Request>> {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer(); }
  static void TearDownTestSuite() { delete server_; }

  static TestServer& server() { return *server_; }
  Request Spoiled(Request request) const {
    this->GetParam().spoil(request);
    return request;
  }
  void ExpectRefusal(const grpc::Status& status) const {
    EXPECT_EQ(status.error_code(), this->GetParam().code);
    EXPECT_EQ(status.error_message(), this->GetParam().message);
  }

 private:
  inline static TestServer* server_ = nullptr;
};

}  // namespace attendant::server
