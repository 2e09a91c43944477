#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/client/commands/run_command_line.h"
#include "tests/client/support/fake_server.h"

namespace attendant::client {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class LoadTestCommandTest : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "load-test");
    arguments.insert(arguments.end(), {"--warmup", "0", "--address", server_.address()});
    return RunWith(arguments);
  }

  FakeServer server_;
};

TEST_F(LoadTestCommandTest, ClosedLoopPrintsATable) {
  const Outcome outcome = Run({"--requests", "20", "--concurrency", "3", "--lengths", "5..12"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(server_.encoded().size(), 20u);
  EXPECT_THAT(outcome.out, HasSubstr("loop               closed, 3 under way\n"));
  EXPECT_THAT(outcome.out, HasSubstr("20 ok, 0 errors"));
  EXPECT_THAT(outcome.out, HasSubstr("queue 1.500  copy 0.250  compute 8.000"));
}

TEST_F(LoadTestCommandTest, OpenLoopPrintsJson) {
  const Outcome outcome =
      Run({"--requests", "20", "--rate", "2000", "--arrival", "poisson", "--method", "attend",
           "--connections", "2", "--batch", "2", "--padded", "--wire-dtype", "bfloat16", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document["ok"], 20);
  EXPECT_EQ(document["plan"]["loop"], "open, 2000 requests/s, poisson");
  EXPECT_EQ(document["plan"]["input"], "hidden states, bfloat16, padded");
  EXPECT_EQ(document["tokens"], 20 * 2 * 128);
  EXPECT_EQ(server_.attended().size(), 20u);
}

TEST_F(LoadTestCommandTest, TokenIds) {
  const Outcome outcome = Run({"--requests", "2", "--token-ids", "--pooled"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(server_.encoded().at(0).has_token_ids());
}

TEST_F(LoadTestCommandTest, ErrorsExitWith4) {
  server_.set_status({grpc::StatusCode::RESOURCE_EXHAUSTED, "full"});
  const Outcome outcome = Run({"--requests", "5", "--json"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(json::parse(outcome.out)["errors"]["RESOURCE_EXHAUSTED"], 5);
}

TEST_F(LoadTestCommandTest, GoodputIsOfTheDeadline) {
  const Outcome outcome = Run({"--requests", "5", "--deadline", "2m", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json goodput = json::parse(outcome.out)["goodput"];
  EXPECT_EQ(goodput["deadline_s"], 120.0);
  EXPECT_EQ(goodput["in_time"], 5);
  EXPECT_EQ(goodput["share"], 1.0);
}

// gRPC rounds such a deadline up, so that some calls may be answered, but never in time.
TEST_F(LoadTestCommandTest, ADeadlineThatIsAlwaysMissedIsMeasuredAllTheSame) {
  const Outcome outcome = Run({"--requests", "5", "--deadline", "1ns", "--json"});
  const json document = json::parse(outcome.out);
  ASSERT_TRUE(document.contains("goodput")) << outcome.out;
  EXPECT_EQ(document["ok"].get<int>() + document["errors"].value("DEADLINE_EXCEEDED", 0), 5);
  EXPECT_EQ(document["goodput"]["in_time"], 0);
}

TEST_F(LoadTestCommandTest, AMissedThresholdExitsWith4) {
  const Outcome missed = Run({"--requests", "5", "--max-p99", "1ns"});
  EXPECT_EQ(missed.exit_code, 4);
  EXPECT_THAT(missed.err, HasSubstr("above --max-p99 1ns"));
  EXPECT_EQ(Run({"--requests", "5", "--max-p99", "1h"}).exit_code, 0);
}

TEST_F(LoadTestCommandTest, BadUsageExitsWith2) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--lengths", "9..5"}, "'9..5' is no distribution of lengths"},
      {{"--rate", "0"}, "--rate"},
      {{"--rate", "5", "--concurrency", "2"}, "--rate"},
      {{"--concurrency", "0"}, "--concurrency"},
      {{"--requests", "-3"}, "--requests"},
      {{"--duration", "long"}, "no duration"},
      {{"--arrival", "bursty"}, "--arrival"},
      {{"--method", "attend", "--token-ids"}, "attend takes hidden states"},
      {{"--method", "attend", "--stream"}, "attend has no --stream"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

TEST_F(LoadTestCommandTest, ServerProblemsBeforeTheRun) {
  EXPECT_EQ(Run({"--model", "c"}).exit_code, 1);
  EXPECT_EQ(RunWith({"load-test", "--address", DeadAddress()}).exit_code, 3);
}

}  // namespace
}  // namespace attendant::client
