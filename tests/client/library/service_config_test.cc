#include "client/service_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "attendant/v1/encoder_service.pb.h"
#include "client/client.h"
#include "tests/client/support/fake_server.h"

namespace attendant::client {
namespace service_config_test {

using nlohmann::json;
using testing::Pair;

TEST(ServiceConfigTest, RetriesExactlyTheCallsThatMayRunTwice) {
  const json config = json::parse(ServiceConfig());
  const google::protobuf::ServiceDescriptor& service =
      *v1::AttendRequest::descriptor()->file()->FindServiceByName("EncoderService");
  EXPECT_EQ(config["healthCheckConfig"]["serviceName"], service.full_name());
  ASSERT_EQ(config["methodConfig"].size(), 1u);
  const json& methods = config["methodConfig"][0];
  EXPECT_EQ(methods["retryPolicy"]["retryableStatusCodes"], json({"UNAVAILABLE"}));
  std::set<std::string> retried;
  for (const json& name : methods["name"]) {
    EXPECT_EQ(name["service"], service.full_name());
    retried.insert(name["method"].get<std::string>());
  }
  std::set<std::string> expected;
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    const bool keeps = method.name() == "PutMemory" || method.name() == "DropMemory";
    if (!method.client_streaming() && !keeps) expected.insert(method.name());
  }
  EXPECT_EQ(retried, expected);
}

TEST(ServiceConfigTest, LeavesHealthChecksToAProxy) {
  json config = json::parse(ServiceConfig());
  config.erase("healthCheckConfig");
  EXPECT_EQ(json::parse(ServiceConfig(HealthChecks::kOfProxy)), config);
}

AttendRequest SmallAttend() {
  constexpr float kValues[] = {1, 0, 1, 0, 0, 2, 0, 2};
  AttendRequest request;
  request.hidden_states = FloatTensor({1, 2, 4}, kValues);
  return request;
}

class RetryTest : public testing::Test {
 protected:
  // Returns what a call gets from a server that fails two, and how often it came to the server.
  std::pair<absl::Status, size_t> Call(const grpc::Status& status, bool retry) {
    server_.set_status(status, 2);
    const Client client =
        Client::Connect(server_.address(), {.own_connection = true, .retry = retry});
    const absl::Status result = client.Attend(SmallAttend()).status();
    return {result, server_.attended().size()};
  }

  FakeServer server_;
};

TEST_F(RetryTest, TriesARefusedCallAgain) {
  EXPECT_THAT(Call({grpc::StatusCode::UNAVAILABLE, "draining"}, true), Pair(absl::OkStatus(), 3));
}

TEST_F(RetryTest, OnlyIfTheServerIsUnavailable) {
  EXPECT_THAT(Call({grpc::StatusCode::RESOURCE_EXHAUSTED, "full"}, true),
              Pair(absl::ResourceExhaustedError("full"), 1));
}

TEST_F(RetryTest, NotIfTheCallerWantsNone) {
  EXPECT_THAT(Call({grpc::StatusCode::UNAVAILABLE, "draining"}, false),
              Pair(absl::UnavailableError("draining"), 1));
}

}  // namespace service_config_test
}  // namespace attendant::client
