#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/integration/server_process.h"

namespace attendant::client {
namespace load_test_test {

using server::ReadyServer;
using server::ServerProcess;
using testing::HasSubstr;

class LoadTestTest : public testing::Test {
 protected:
  // Runs a short load test with these flags and returns its report.
  static nlohmann::json Run(const std::string& address, std::vector<std::string> flags) {
    std::vector<std::string> all = {"load-test", "--address", address, "--warmup", "0", "--json"};
    all.insert(all.end(), flags.begin(), flags.end());
    const Outcome outcome = RunWith(all);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(LoadTestTest, PipelinesOverStreams) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const auto report = Run(server.address(), {"--stream", "--requests", "200", "--concurrency", "40",
                                             "--connections", "2", "--lengths", "1..16"});
  EXPECT_EQ(report["steps"][0]["ok"], 200);
  EXPECT_EQ(report["plan"]["method"], "encode, over a stream per connection");
  EXPECT_EQ(report["run"]["server"], "attendant");
  EXPECT_EQ(report["run"]["server_version"], report["run"]["client_version"]);
  EXPECT_EQ(report["run"]["model"]["compute_type"], "f32");
  server.ExpectMetrics(HasSubstr("{code=\"OK\",method=\"EncodeStream\",model=\"t\"} 200\n"));
}

TEST_F(LoadTestTest, ReadsTheMetricsOfTheServer) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const auto report =
      Run(server.address(), {"--requests", "20", "--lengths", "7", "--metrics-url",
                             absl::StrCat("http://127.0.0.1:", server.http_port(), "/metrics")});
  double tokens = 0;
  for (const auto& [name, more] : report["metrics"]["counters"].items()) {
    if (name.starts_with("attendant_tokens_total{")) tokens += more.get<double>();
  }
  // An answer leaves before it is counted.
  EXPECT_THAT(tokens, testing::AllOf(testing::Ge(7 * 10), testing::Le(7 * 20)));
  EXPECT_EQ(report["metrics"]["gauges"]["attendant_ready"], nlohmann::json({1.0, 1.0}));
}

TEST_F(LoadTestTest, SpeaksTheOpenInferenceProtocol) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  for (const std::vector<std::string>& form : std::vector<std::vector<std::string>>{
           {"--token-ids"}, {}, {"--method", "attend", "--wire-dtype", "bfloat16"}}) {
    std::vector<std::string> flags = {"--protocol", "oip",           "--requests", "30",
                                      "--lengths",  "1..16",         "--batch",    "3",
                                      "--verify",   "--connections", "2"};
    flags.insert(flags.end(), form.begin(), form.end());
    const auto report = Run(server.address(), flags);
    EXPECT_EQ(report["steps"][0]["ok"], 30);
    EXPECT_EQ(report["steps"][0]["mismatches"], 0);
  }
  server.ExpectMetrics(HasSubstr("method=\"ModelInfer\""));
}

TEST_F(LoadTestTest, VerifiesThatBatchesDoNotChangeBits) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const auto report = Run(server.address(), {"--verify", "--token-ids", "--requests", "400",
                                             "--concurrency", "32", "--lengths", "1..16"});
  EXPECT_EQ(report["steps"][0]["ok"], 400);
  EXPECT_EQ(report["steps"][0]["mismatches"], 0);
  EXPECT_GT(report["steps"][0]["batch"]["requests"], 1.0);
}

TEST_F(LoadTestTest, GoesThroughAUnixSocket) {
  const std::string path = absl::StrCat(testing::TempDir(), "/load", getpid());
  ServerProcess server(
      {absl::StrCat("--address=unix:", path), "--http-port=0", "--model=t=synthetic:tiny"});
  server.AwaitLine("ready: ");
  const auto report =
      Run(absl::StrCat("unix:", path), {"--requests", "20", "--concurrency", "1,4"});
  EXPECT_EQ(report["steps"][1]["ok"], 20);
}

}  // namespace load_test_test
}  // namespace attendant::client
