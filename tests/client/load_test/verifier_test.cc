#include "client/load_test/verifier.h"

#include <gtest/gtest.h>

#include "tests/client/support/fake_server.h"

namespace attendant::client {
namespace verifier_test {

class VerifierTest : public testing::Test {
 protected:
  VerifierTest() {
    ModelInfo model;
    model.mutable_layer()->set_hidden_size(2);
    workload_ = Workload::Make({.method = Method::kAttend, .model = ""},
                               Sequences::OfLengths({3, 5}), model);
  }

  absl::StatusOr<std::unique_ptr<Verifier>> Make() {
    return Verifier::Make(Client::Connect(server_.address()), {}, *workload_);
  }

  FakeServer server_;
  absl::StatusOr<Workload> workload_ = absl::UnknownError("");
};

RawAnswer Answer(const std::string& content) {
  RawAnswer answer;
  answer.execution.tokens = 7;
  answer.content = content;
  return answer;
}

TEST_F(VerifierTest, ComparesWithTheAnswerOfTheSameRequest) {
  const auto verifier = Make();
  ASSERT_TRUE(verifier.ok()) << verifier.status();
  ASSERT_EQ(server_.attended().size(), 2u);
  v1::AttendResponse first;
  *first.mutable_output() = server_.attended()[0].hidden_states();
  v1::AttendResponse second;
  *second.mutable_output() = server_.attended()[1].hidden_states();
  EXPECT_EQ((*verifier)->Check(0, Answer(first.SerializeAsString()))->tokens, 7);
  EXPECT_TRUE((*verifier)->Check(3, Answer(second.SerializeAsString())).ok());
  EXPECT_EQ((*verifier)->TakeMismatches(), 0);
  EXPECT_EQ(
      (*verifier)->Check(1, Answer(first.SerializeAsString())).status(),
      absl::DataLossError("the response differs from the response to the same request by itself"));
  EXPECT_EQ((*verifier)->TakeMismatches(), 1);
  EXPECT_EQ((*verifier)->TakeMismatches(), 0);
}

TEST_F(VerifierTest, OneBitIsEnough) {
  const auto verifier = Make();
  ASSERT_TRUE(verifier.ok()) << verifier.status();
  v1::AttendResponse changed;
  *changed.mutable_output() = server_.attended()[0].hidden_states();
  (*changed.mutable_output()->mutable_data())[20] ^= 1;
  EXPECT_FALSE((*verifier)->Check(0, Answer(changed.SerializeAsString())).ok());
}

TEST_F(VerifierTest, ErrorsAreNoMismatches) {
  const auto verifier = Make();
  ASSERT_TRUE(verifier.ok()) << verifier.status();
  EXPECT_EQ((*verifier)->Check(0, absl::UnavailableError("draining")).status(),
            absl::UnavailableError("draining"));
  EXPECT_EQ((*verifier)->TakeMismatches(), 0);
}

TEST_F(VerifierTest, NeedsAnAnswerToEachRequest) {
  server_.set_status({grpc::StatusCode::RESOURCE_EXHAUSTED, "full"});
  EXPECT_EQ(Make().status(), absl::ResourceExhaustedError("full"));
}

}  // namespace verifier_test
}  // namespace attendant::client
