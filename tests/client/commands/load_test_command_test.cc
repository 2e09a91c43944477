#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/tensor.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/client/support/fake_server.h"
#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace load_test_command_test {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

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
  EXPECT_THAT(outcome.out, HasSubstr("loop               closed, 3 in flight\n"));
  EXPECT_THAT(outcome.out, HasSubstr("20 ok, 0 errors"));
  EXPECT_THAT(outcome.out, HasSubstr("queue 1.500  copy 0.250  compute 8.000"));
}

TEST_F(LoadTestCommandTest, OpenLoopPrintsJson) {
  const Outcome outcome =
      Run({"--requests", "20", "--rate", "2000", "--arrival", "poisson", "--method", "attend",
           "--connections", "2", "--batch", "2", "--padded", "--wire-dtype", "bfloat16", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document["steps"][0]["ok"], 20);
  EXPECT_EQ(document["plan"]["loop"], "open, 2000 requests/s, poisson");
  EXPECT_EQ(document["plan"]["input"], "hidden states, bfloat16, padded");
  EXPECT_EQ(document["steps"][0]["tokens"], 20 * 2 * 128);
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
  EXPECT_EQ(json::parse(outcome.out)["steps"][0]["errors"]["RESOURCE_EXHAUSTED"], 5);
  EXPECT_EQ(outcome.err, "attendant-client: the first error: RESOURCE_EXHAUSTED: full\n");
}

TEST_F(LoadTestCommandTest, GoodputIsOfTheDeadline) {
  const Outcome outcome = Run({"--requests", "5", "--deadline", "2m", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json goodput = json::parse(outcome.out)["steps"][0]["goodput"];
  EXPECT_EQ(goodput["deadline_s"], 120.0);
  EXPECT_EQ(goodput["in_time"], 5);
  EXPECT_EQ(goodput["share"], 1.0);
}

// gRPC rounds such a deadline up, so that some calls may be answered, but never in time.
TEST_F(LoadTestCommandTest, ADeadlineThatIsAlwaysMissedIsMeasuredAllTheSame) {
  const Outcome outcome = Run({"--requests", "5", "--deadline", "1ns", "--json"});
  const json document = json::parse(outcome.out)["steps"][0];
  ASSERT_TRUE(document.contains("goodput")) << outcome.out;
  EXPECT_EQ(document["ok"].get<int>() + document["errors"].value("DEADLINE_EXCEEDED", 0), 5);
  EXPECT_EQ(document["goodput"]["in_time"], 0);
}

TEST_F(LoadTestCommandTest, AMissedObjectiveExitsWith4AndIsNamed) {
  const Outcome missed = Run({"--requests", "5", "--require", "p99<1ns", "--require", "max<1h",
                              "--require", "goodput>1000000", "--json"});
  EXPECT_EQ(missed.exit_code, 4);
  EXPECT_THAT(missed.err, HasSubstr("attendant-client: --require p99<1ns: expected below 1e-06 ms, "
                                    "measured "));
  EXPECT_THAT(missed.err,
              HasSubstr("--require goodput>1000000: expected above 1e+06 requests/s, "));
  EXPECT_THAT(missed.err, Not(HasSubstr("max<1h")));
  EXPECT_EQ(json::parse(missed.out)["steps"][0]["missed"].size(), 2u);
  EXPECT_EQ(Run({"--requests", "5", "--require", "p99<1h"}).exit_code, 0);
}

TEST_F(LoadTestCommandTest, AnInterruptedTestMeetsNothing) {
  std::atomic<int> calls = 0;
  server_.set_before_answer([&](grpc::ServerContext&) {
    if (++calls == 3) raise(SIGINT);
  });
  const Outcome outcome =
      Run({"--concurrency", "1,2", "--duration", "1h", "--require", "p99<1h", "--json"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(
      outcome.err,
      "attendant-client: interrupted: the last step is shorter, and later steps are missing\n");
  EXPECT_EQ(json::parse(outcome.out)["interrupted"], true);
  EXPECT_EQ(json::parse(outcome.out)["steps"].size(), 1u);
}

TEST_F(LoadTestCommandTest, SaysThatNothingWasMeasured) {
  const Outcome outcome = Run({"--duration", "0"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err, "attendant-client: at 4 in flight: no request was measured\n");
}

// One request is due at the start, the next one after the end.
TEST_F(LoadTestCommandTest, ASlowRateIsMeasuredForTheWholeDuration) {
  const Outcome outcome = Run({"--rate", "0.001", "--duration", "100ms", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json step = json::parse(outcome.out)["steps"][0];
  EXPECT_EQ(step["ok"], 1);
  EXPECT_GE(step["elapsed_s"], 0.1);
  EXPECT_LE(step["requests_per_s"], 10.0);
}

TEST_F(LoadTestCommandTest, AnObjectiveForErrorsAllowsThem) {
  server_.set_status({grpc::StatusCode::RESOURCE_EXHAUSTED, "full"}, 2);
  EXPECT_EQ(Run({"--requests", "20", "--require", "errors<50%"}).exit_code, 0);
  server_.set_status({grpc::StatusCode::RESOURCE_EXHAUSTED, "full"}, 2);
  const Outcome missed = Run({"--requests", "20", "--require", "errors<10%"});
  EXPECT_EQ(missed.exit_code, 4);
  EXPECT_THAT(missed.err, HasSubstr("errors<10%: expected below 10 %, measured 10 %"));
}

TEST_F(LoadTestCommandTest, StepsOfAListAndOfARampAreInOneReport) {
  const Outcome closed = Run({"--requests", "5", "--concurrency", "1,3", "--require", "max<1ns"});
  EXPECT_EQ(closed.exit_code, 4);
  EXPECT_THAT(closed.out, HasSubstr("loop               closed, 1,3 in flight\n"));
  EXPECT_THAT(closed.out, HasSubstr("\n1 in flight "));
  EXPECT_THAT(closed.out, HasSubstr("\n3 in flight "));
  EXPECT_THAT(closed.err, HasSubstr("at 3 in flight: --require max<1ns: expected below"));
  const Outcome open = Run({"--requests", "5", "--rate", "1000..3000:3", "--json"});
  EXPECT_EQ(open.exit_code, 0) << open.err;
  const json steps = json::parse(open.out)["steps"];
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1]["load"]["rate"], 2000.0);
  EXPECT_EQ(steps[2]["ok"], 5);
  EXPECT_EQ(server_.encoded().size(), 25u);
}

TEST_F(LoadTestCommandTest, FindRateExitsWith4IfNoRateHolds) {
  const Outcome none = Run({"--requests", "2", "--rate", "5", "--find-rate", "p99<1ns"});
  EXPECT_EQ(none.exit_code, 2);  // beside --rate
  server_.set_status({grpc::StatusCode::RESOURCE_EXHAUSTED, "full"});
  const Outcome failed = Run({"--requests", "2", "--find-rate", "p99<1h"});
  EXPECT_EQ(failed.exit_code, 4);
  EXPECT_THAT(failed.out, HasSubstr("highest rate       none of the rates tried\n"));
}

// The server answers at once, so that any rate holds until this machine sends too late.
TEST_F(LoadTestCommandTest, FindRateReportsEachOfItsSteps) {
  const Outcome outcome =
      Run({"--requests", "3", "--find-rate", "p50<1h", "--find-rate", "errors<1%", "--find-width",
           "100%", "--concurrency", "2", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document["plan"]["loop"], "open, search for the highest rate, constant");
  EXPECT_EQ(document["search"]["objectives"], json({"p50<1h", "errors<1%"}));
  EXPECT_EQ(document["search"]["width"], 1.0);
  EXPECT_GT(document["search"]["rate"], 0.0);
  EXPECT_EQ(document["steps"][0]["load"]["concurrency"], 2);
  EXPECT_EQ(document["steps"][1]["load"]["rate"],
            document["search"]["capacity_per_s"].get<double>() / 2);
}

TEST_F(LoadTestCommandTest, TheReportSaysHowToRunItAgain) {
  const Outcome outcome = Run({"--requests", "4", "--seed", "12", "--json"});
  const json run = json::parse(outcome.out)["run"];
  EXPECT_EQ(run["command_line"][0], "attendant-client");
  EXPECT_EQ(run["command_line"][3], "4");
  EXPECT_EQ(run["seed"], 12);
  EXPECT_EQ(run["address"], server_.address());
  EXPECT_EQ(run["server"], "");  // the fake server does not speak the Open Inference Protocol
  EXPECT_EQ(run["model"]["compute_type"], "f32");
  EXPECT_EQ(run["model"]["thread_plan"]["isa"], "avx2");
  EXPECT_EQ(json::parse(outcome.out)["steps"][0]["seconds"][0]["sent"], 4);
}

TEST_F(LoadTestCommandTest, EveryRequestHasALineInAFile) {
  const std::string path = ScratchPath("requests.jsonl");
  const Outcome outcome =
      Run({"--requests", "4", "--concurrency", "1,2", "--lengths", "9", "--requests-out", path});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(FileBytes(path));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const json record = json::parse(line);
    EXPECT_EQ(record["step"], count / 4);
    EXPECT_EQ(record["status"], "OK");
    EXPECT_EQ(record["tokens"], 9);
    EXPECT_EQ(record["compute_ms"], 8.0);
    EXPECT_LE(record["sent_s"], record["answered_s"]);
  }
  EXPECT_EQ(count, 8);
}

TEST_F(LoadTestCommandTest, ReportsAreSavedShownAndCompared) {
  const std::string page = ScratchPath("load.html");
  const std::string saved = ScratchPath("a.json");
  const Outcome run = Run({"--requests", "4", "--html", page, "--json-out", saved, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(FileBytes(saved), run.out);
  EXPECT_THAT(FileBytes(page), HasSubstr("<title>Load test</title>"));
  const Outcome shown = RunWith({"load-report", saved, "--html", page});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("\n4 in flight "));
  EXPECT_THAT(FileBytes(page), HasSubstr("\"name\":\"a.json\""));
  const Outcome compared = RunWith({"load-report", saved, saved, "--html", page});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("4 in flight              p99 ms "));
  EXPECT_THAT(compared.out, HasSubstr("  x 1.000\n"));
  EXPECT_EQ(json::parse(RunWith({"load-report", saved, saved, "--json"}).out).size(), 2u);
}

TEST_F(LoadTestCommandTest, AFullDiskDoesNotLoseTheReport) {
  for (const char* flag : {"--requests-out", "--json-out", "--html"}) {
    const Outcome outcome = Run({"--requests", "4", flag, "/dev/full"});
    EXPECT_EQ(outcome.exit_code, 2) << flag;
    EXPECT_THAT(outcome.err, HasSubstr("/dev/full")) << flag;
    EXPECT_THAT(outcome.out, HasSubstr("4 ok, 0 errors")) << flag;
  }
}

TEST_F(LoadTestCommandTest, ATestThatCannotStartKeepsTheReportBefore) {
  const std::string saved = ScratchFile("before.json", "{}");
  EXPECT_EQ(RunWith({"load-test", "--address", DeadAddress(), "--json-out", saved}).exit_code, 3);
  EXPECT_EQ(FileBytes(saved), "{}");
}

TEST_F(LoadTestCommandTest, LoadReportNamesTheFileThatIsWrong) {
  const Outcome none = RunWith({"load-report", "/nowhere/a.json"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("/nowhere/a.json"));
  const Outcome other = RunWith({"load-report", ScratchFile("b.json", "{}")});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("b.json: is not a report of load-test --json"));
  EXPECT_EQ(RunWith({"load-report"}).exit_code, 2);
  const std::string report = ScratchFile("c.json", "{}");
  EXPECT_THAT(RunWith({"load-report", report, report, report}).err,
              HasSubstr("FILE: expected one or two; got 3"));
}

TEST_F(LoadTestCommandTest, LengthsIdsAndTimesComeFromFiles) {
  const std::string lengths = ScratchFile("lengths", "3\n5\n");
  const Outcome listed = Run({"--requests", "2", "--concurrency", "1", "--lengths-file", lengths});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr(absl::StrCat("lengths            from ", lengths, "\n")));
  EXPECT_THAT(server_.encoded()[1].lengths(), testing::ElementsAre(5));
  const Outcome ids = Run({"--ids-file", ScratchFile("ids", "[7, 8]\n"), "--timestamps-file",
                           ScratchFile("times", "10\n10.5\n11\n"), "--speed", "100", "--json"});
  EXPECT_EQ(ids.exit_code, 0) << ids.err;
  const json document = json::parse(ids.out);
  EXPECT_EQ(document["steps"][0]["ok"], 3);
  EXPECT_EQ(document["steps"][0]["load"]["rate"], 200.0);
  EXPECT_THAT(document["plan"]["loop"].get<std::string>(),
              HasSubstr("times at 100 times the speed"));
  EXPECT_EQ(document["plan"]["input"], "token ids, packed");
  EXPECT_EQ(server_.encoded()[2].token_ids().data(), Int64Tensor({2}, {7, 8}).data);
}

TEST_F(LoadTestCommandTest, VerifyCountsAnswersThatDiffer) {
  const Outcome same =
      Run({"--method", "attend", "--requests", "20", "--lengths", "2", "--verify"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(server_.attended().size(), 512u + 20u);
  std::atomic<int> calls = 0;
  server_.set_before_answer([&](grpc::ServerContext&) {
    if (++calls == 512) server_.set_unsound(true);  // from the next call on
  });
  const Outcome differs = Run({"--method", "attend", "--requests", "20", "--lengths", "2",
                               "--verify", "--json", "--require", "errors<100%"});
  EXPECT_EQ(differs.exit_code, 4);
  EXPECT_THAT(differs.err, HasSubstr("at 4 in flight: 20 responses differ from the responses to "
                                     "the same requests by themselves\n"));
  EXPECT_EQ(json::parse(differs.out)["steps"][0]["mismatches"], 20);
  EXPECT_EQ(json::parse(differs.out)["steps"][0]["errors"]["DATA_LOSS"], 20);
}

TEST_F(LoadTestCommandTest, VerifyNeedsAnswersBeforeTheTest) {
  server_.set_status({grpc::StatusCode::RESOURCE_EXHAUSTED, "full"});
  const Outcome refused = Run({"--requests", "2", "--verify"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("RESOURCE_EXHAUSTED: full"));
}

TEST_F(LoadTestCommandTest, BadUsageExitsWith2) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--lengths", "9..5"}, "--lengths: expected N, MIN..MAX or"},
      {{"--rate", "0"}, "--rate"},
      {{"--rate", "5", "--concurrency", "2"}, "--rate: cannot be combined with --concurrency"},
      {{"--concurrency", "0"}, "--concurrency"},
      {{"--requests", "-3"}, "--requests: expected an integer of at least 1"},
      {{"--duration", "long"}, "--duration: expected a duration"},
      {{"--arrival", "bursty"}, "--arrival: expected one of constant, poisson"},
      {{"--arrival", "poisson"}, "--arrival: poisson requires --rate or --find-rate"},
      {{"--concurrency", "2", "--arrival", "poisson"}, "--arrival: poisson requires --rate"},
      {{"--method", "attend", "--token-ids"}, "attend: expected hidden states; got token ids"},
      {{"--method", "attend", "--stream"}, "--stream: cannot be combined with --method attend"},
      {{"--rate", "5,x"}, "--rate: expected a value, a list (50,100) or a ramp"},
      {{"--concurrency", "1.5"}, "--concurrency: expected a value, a list"},
      {{"--require", "p99"}, "--require: expected an objective such as"},
      {{"--find-rate", "p99<50"}, "--find-rate: expected a duration above 0"},
      {{"--find-rate", "goodput>5"}, "--find-rate: expected an objective for latency"},
      {{"--find-rate", "p99<1s", "--find-width", "5"},
       "--find-width: expected a share of 0.1%..100%; got \"5\""},
      {{"--find-rate", "p99<1s", "--find-width", "0.01%"}, "share of 0.1%..100%"},
      {{"--find-rate", "p99<1s", "--concurrency", "1,2"}, "--concurrency: expected one value"},
      {{"--find-rate", "p99<1s", "--require", "max<1s"},
       "--require: cannot be combined with --find-rate"},
      {{"--find-width", "5%"}, "--find-width: requires --find-rate"},
      {{"--requests-out", "/nowhere/f"}, "--requests-out: cannot write /nowhere/f"},
      {{"--html", "/nowhere/f"}, "--html: /nowhere/f"},
      {{"--json-out", "/nowhere/f"}, "--json-out: /nowhere/f"},
      {{"--metrics-url", "http://127.0.0.1:1/metrics"}, "--metrics-url: http://127.0.0.1:1/"},
      {{"--metrics-token-file", "/nowhere/f"}, "requires --metrics-url"},
      {{"--lengths-file", "/nowhere/f"}, "/nowhere/f"},
      {{"--lengths-file", "/nowhere/f", "--lengths", "5"}, "--lengths"},
      {{"--ids-file", "/nowhere/f"}, "/nowhere/f"},
      {{"--ids-file", "/nowhere/f", "--lengths-file", "/nowhere/f"}, "--lengths-file"},
      {{"--ids-file", ScratchFile("unknown", "[100]")}, "sequence 1: id 100 is not below 100"},
      {{"--ids-file", ScratchFile("known", "[1]"), "--method", "attend"},
       "attend: expected hidden states; got token ids"},
      {{"--timestamps-file", "/nowhere/f"}, "--timestamps-file: /nowhere/f"},
      {{"--timestamps-file", ScratchFile("back", "2\n1")}, "line 2: expected a time in seconds"},
      {{"--timestamps-file", "/nowhere/f", "--rate", "5"}, "--rate"},
      {{"--speed", "2"}, "--speed: requires --timestamps-file"},
      {{"--timestamps-file", "/nowhere/f", "--speed", "0"},
       "--speed: expected a number of 0.001..1e+06; got \"0\""},
      {{"--protocol", "http"}, "--protocol"},
      {{"--protocol", "oip", "--stream"}, "--stream: cannot be combined with --protocol oip"},
      {{"--verify", "--stream"}, "--verify: cannot be combined with --stream"},
      {{"--metrics-url", "http://x", "--metrics-token-file", "/nowhere/f"},
       "--metrics-token-file: /nowhere/f"},
      {{"--metrics-url", "ftp://x"}, "--metrics-url: ftp://x: "},
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

}  // namespace load_test_command_test
}  // namespace attendant::client
