// Tests of start, stop and drain of the real process.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_call.h"

namespace attendant::server {
namespace lifecycle_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(LifecycleTest, SaysAtTheStartWhatItWorksWith) {
  ServerProcess server({"--port=0", "--http-port=0", "--address=127.0.0.1", "--instances=1",
                        "--threads-per-instance=1"});
  EXPECT_THAT(server.AwaitLine("oneDNN"), HasSubstr("instruction set"));
  server.AwaitLine("setting model = worked-example=worked-example");
  server.AwaitLine("setting max-batch-tokens = 1024");
  EXPECT_THAT(server.AwaitLine("instances 1, threads per instance 1;"),
              HasSubstr("CPUs by affinity"));
  EXPECT_THAT(server.AwaitLine("model worked-example: "), HasSubstr("width 4"));
  EXPECT_THAT(server.AwaitLine("ready: "), HasSubstr("gRPC on 127.0.0.1 port "));
}

TEST(LifecycleTest, SaysWhoseProductsAModelHas) {
  ServerProcess server(
      {"--port=0", "--http-port=0", "--address=127.0.0.1", "--model=m=synthetic:tiny,gemm=onednn"});
  server.AwaitLine("setting model = m=synthetic:tiny,gemm=onednn");
  EXPECT_THAT(server.AwaitLine("model m: matrix products "),
              AllOf(HasSubstr(": oneDNN "), HasSubstr(" in row tiles of "),
                    HasSubstr(" for 32x96, 32x32, 32x64, 64x32")));
  server.AwaitLine("ready: ");
}

TEST(LifecycleTest, SaysHowThreadsDivideTheWorkOfAModel) {
  ServerProcess server({"--port=0", "--http-port=0", "--address=127.0.0.1", "--instances=1",
                        "--threads-per-instance=2"});
  server.AwaitLine("setting row-plan = auto");
  EXPECT_THAT(server.AwaitLine("one team for each product"),
              AllOf(HasSubstr("model worked-example: "), HasSubstr("rows against team: ")));
  server.AwaitLine("ready: ");
}

TEST(LifecycleTest, DividesTheWorkAsItIsTold) {
  for (const auto& [plan, rows_from] : {std::pair("team", 0), std::pair("rows", 1)}) {
    ReadyServer server({"--threads-per-instance=2", absl::StrCat("--row-plan=", plan)});
    v1::GetModelRequest request;
    request.set_model("worked-example");
    v1::GetModelResponse response;
    grpc::ClientContext call;
    ASSERT_TRUE(server.NewStub()->GetModel(&call, request, &response).ok());
    EXPECT_EQ(response.thread_plan().rows_per_thread_from(), rows_from);
  }
}

// Returns the number of threads that have the name of the program, unlike those of gRPC and of the
// instances.
int64_t CountThreads(const ServerProcess& server) {
  int64_t count = 0;
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", server.pid(), "/task"))) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && absl::StartsWith(name, "attendant")) ++count;
  }
  return count;
}

// Loading uses a team of threads. If OpenMP kept them, it would make those of the instances sleep
// between two products, since there would be more threads than CPUs.
TEST(LifecycleTest, KeepsNoThreadsOfLoading) {
  const auto start = [](int threads) {
    return std::make_unique<ServerProcess>(std::vector<std::string>{
        "--port=0", "--http-port=0", "--address=127.0.0.1", "--model=tiny=synthetic:tiny",
        "--instances=1", absl::StrCat("--threads-per-instance=", threads)});
  };
  const auto with_one = start(1), with_two = start(2);
  with_one->AwaitLine("ready: ");
  with_two->AwaitLine("ready: ");
  // Threads may still be about to end; without an end, the test times out.
  while (CountThreads(*with_two) > CountThreads(*with_one)) std::this_thread::yield();
}

// The variables of the process as libraries have read them before its main.
std::vector<std::string> VariablesOf(const ServerProcess& server) {
  std::ifstream file(absl::StrCat("/proc/", server.pid(), "/environ"));
  std::string text(std::istreambuf_iterator<char>(file), {});
  return absl::StrSplit(text, '\0', absl::SkipEmpty());
}

TEST(LifecycleTest, SetsVariablesOfLibraries) {
  ServerProcess server({"--port=0", "--http-port=0", "--address=127.0.0.1"});
  server.AwaitLine("ready: ");
  const std::vector<std::string> variables = VariablesOf(server);
  EXPECT_THAT(variables, Contains("GOMP_SPINCOUNT=1000"));
  // Debian 12's C library ends the text where it has found the first value.
  EXPECT_THAT(variables, Contains(StartsWith("GLIBC_TUNABLES=glibc.malloc.tcache_max=128")));
}

TEST(LifecycleTest, LeavesVariablesOfLibrariesThatTheUserHasSet) {
  ServerProcess server({"--port=0", "--http-port=0", "--address=127.0.0.1"},
                       {"OMP_WAIT_POLICY=passive", "GLIBC_TUNABLES=glibc.malloc.tcache_count=3"});
  server.AwaitLine("ready: ");
  const std::vector<std::string> variables = VariablesOf(server);
  EXPECT_THAT(variables, Contains("GLIBC_TUNABLES=glibc.malloc.tcache_count=3"));
  EXPECT_THAT(variables, Not(Contains(StartsWith("GOMP_SPINCOUNT="))));
}

TEST(LifecycleTest, LogsJsonLines) {
  ReadyServer server({"--log-format=json"});
  server.process().Signal(SIGTERM);
  const ServerProcess::End end = server.process().AwaitEnd();
  EXPECT_FALSE(end.lines.empty());
  for (const std::string& line : end.lines) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(entry.is_object()) << line;
    EXPECT_TRUE(entry.contains("time") && entry.contains("level") && entry.contains("message"));
  }
}

TEST(LifecycleTest, LogsNothingBelowTheLevel) {
  const TakenPort taken;
  ServerProcess server({"--port=0", "--http-port=0", "--log-level=error", "--config=/nowhere"});
  EXPECT_EQ(server.AwaitEnd().lines.size(), 1u);
}

TEST(LifecycleTest, BothSignalsStopItWithCodeZero) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ReadyServer server;
    server.process().Signal(signal);
    const ServerProcess::End end = server.process().AwaitEnd();
    EXPECT_EQ(end.code, 0);
    EXPECT_THAT(end.lines, Contains(HasSubstr("stopped")));
  }
}

TEST(LifecycleTest, NotReadyWhileItLoadsAndASignalThenEndsItAtOnce) {
  int http_port;
  {
    const TakenPort free_soon;
    http_port = free_soon.port();
  }
  ServerProcess server({"--address=127.0.0.1", "--port=0", absl::StrCat("--http-port=", http_port),
                        "--model=m=synthetic:bert-base"});
  server.AwaitLine("oneDNN");
  EXPECT_THAT(HttpGet(http_port, "/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(HttpGet(http_port, "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(HttpGet(http_port, "/metrics"), HasSubstr("attendant_ready 0\n"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitEnd().code, 128 + SIGTERM);
}

TEST(LifecycleTest, WatchersSeeNotServingFirst) {
  ReadyServer server;
  RawCall watch(server.NewChannel(), "/grpc.health.v1.Health/Watch");
  watch.Write(TextField(1, "worked-example"));
  watch.WritesDone();
  EXPECT_EQ(Number(watch.Read().value_or(""), 1), kServing);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(Number(watch.Read().value_or(""), 1), kNotServing);
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
}

// Waits until a gauge has a value.
void AwaitGauge(const ReadyServer& server, const std::string& name, int value) {
  const std::string line = absl::StrCat("\n", name, " ", value, "\n");
  const absl::Time patience = absl::Now() + absl::Minutes(1);
  while (server.Get("/metrics").find(line) == std::string::npos) {
    ASSERT_LT(absl::Now(), patience);
  }
}

// Waits until the server has let in this many requests that have not ended.
void AwaitInflight(const ReadyServer& server, int requests) {
  AwaitGauge(server, "attendant_inflight_requests", requests);
}

// Callers that send requests until one is not answered.
class Load {
 public:
  Load(const ReadyServer& server, int callers) : under_way_(callers) {
    for (int i = 0; i < callers; ++i) {
      threads_.emplace_back([this, stub = server.NewStub()] { Call(*stub); });
    }
  }
  ~Load() {
    for (std::thread& thread : threads_) thread.join();
  }

  // Waits until every caller has had a few answers.
  void AwaitUnderWay() { under_way_.Wait(); }
  // Returns the callers' last statuses.
  std::vector<grpc::Status> AwaitEnds() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return ends_;
  }
  int64_t answered() const { return answered_; }

 private:
  static v1::EncodeRequest Request() {
    v1::EncodeRequest request;
    *request.mutable_token_ids() =
        IntegerTensor({8, 16}, std::vector<int64_t>(8 * 16, 7), v1::INT8);
    return request;
  }

  void Call(v1::EncoderService::Stub& stub) {
    const v1::EncodeRequest request = Request();
    grpc::Status status;
    int answered = 0;
    for (;; ++answered) {
      grpc::ClientContext context;
      v1::EncodeResponse response;
      status = stub.Encode(&context, request, &response);
      if (answered == 10) under_way_.DecrementCount();
      if (!status.ok()) break;
      EXPECT_EQ(response.hidden_states().data().size(), 8u * 16 * 32 * 4);
    }
    answered_ += answered;
    if (answered < 10) under_way_.DecrementCount();
    absl::MutexLock lock(&mutex_);
    ends_.push_back(status);
  }

  absl::BlockingCounter under_way_;
  std::atomic<int64_t> answered_ = 0;
  absl::Mutex mutex_;
  std::vector<grpc::Status> ends_;
  std::vector<std::thread> threads_;
};

TEST(LifecycleTest, LosesNoAcceptedRequestWhenItStops) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  Load load(server, 8);
  load.AwaitUnderWay();
  server.process().Signal(SIGTERM);
  const ServerProcess::End end = server.process().AwaitEnd();
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.lines, Contains(HasSubstr("draining: ")));
  EXPECT_THAT(end.lines, testing::Not(Contains(HasSubstr("drain timeout"))));
  for (const grpc::Status& status : load.AwaitEnds()) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  }
  // A call that gRPC had not read when its connection closed is UNAVAILABLE like one that was
  // refused, so only the counts of both sides tell whether an answer was lost.
  EXPECT_THAT(
      end.lines,
      Contains(HasSubstr(absl::StrCat("stopped after answering ", load.answered(), " requests"))));
}

TEST(LifecycleTest, ASecondSignalEndsItAtOnce) {
  ReadyServer server({"--model=t=synthetic:tiny", "--drain-timeout=1h"});
  // A request whose body never comes keeps the drain waiting.
  RawCall half_sent(server.NewChannel(), "/attendant.v1.EncoderService/Encode");
  AwaitInflight(server, 1);
  server.process().Signal(SIGTERM);
  server.process().AwaitLine("draining: ");
  EXPECT_EQ(server.process().SignalUntilEnd(SIGTERM).code, 128 + SIGTERM);
}

TEST(LifecycleTest, ALameDuckStillAcceptsCalls) {
  ReadyServer server({"--lame-duck=1h"});
  RawCall watch(server.NewChannel(), "/grpc.health.v1.Health/Watch");
  watch.Write(TextField(1, ""));
  watch.WritesDone();
  EXPECT_EQ(Number(watch.Read().value_or(""), 1), kServing);
  server.process().Signal(SIGTERM);
  server.process().AwaitLine("lame duck: ");
  EXPECT_EQ(Number(watch.Read().value_or(""), 1), kNotServing);
  EXPECT_THAT(server.Get("/readyz"), StartsWith("HTTP/1.1 503"));
  v1::ListModelsResponse response;
  grpc::ClientContext call;
  EXPECT_TRUE(server.NewStub()->ListModels(&call, {}, &response).ok());
  EXPECT_EQ(server.process().SignalUntilEnd(SIGTERM).code, 128 + SIGTERM);
}

TEST(LifecycleTest, ALameDuckDrainsInTheEnd) {
  ReadyServer server({"--lame-duck=100ms"});
  server.process().Signal(SIGTERM);
  server.process().AwaitLine("lame duck: not ready, but accepting requests for another 100ms");
  server.process().AwaitLine("draining: ");
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
}

TEST(LifecycleTest, TheDrainTimeoutEndsWhatDoesNotEnd) {
  ReadyServer server({"--model=t=synthetic:tiny", "--drain-timeout=0", "--receive-timeout=1h"});
  RawCall half_sent(server.NewChannel(), "/attendant.v1.EncoderService/Encode");
  AwaitInflight(server, 1);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
  EXPECT_EQ(half_sent.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(LifecycleTest, AnIdleStreamDoesNotHoldUpTheDrain) {
  ReadyServer server({"--model=t=synthetic:tiny", "--drain-timeout=1m"});
  RawCall idle(server.NewChannel(), "/attendant.v1.EncoderService/EncodeStream");
  AwaitGauge(server, "attendant_open_streams", 1);
  server.process().Signal(SIGTERM);
  const ServerProcess::End end = server.process().AwaitEnd();
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.lines, testing::Not(Contains(HasSubstr("drain timeout"))));
  EXPECT_EQ(idle.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace lifecycle_test
}  // namespace attendant::server
