// Tests that nobody notices that one of two servers restarts, with the service config that clients
// are given.
#include <atomic>
#include <csignal>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace rolling_restart_test {

using ::testing::IsEmpty;

constexpr int64_t kSequences = 24, kLength = 1024, kWidth = 32;  // 3 MiB of float32
constexpr int kRestarts = 4;
constexpr int kCallers = 3;

std::unique_ptr<ReadyServer> StartServer(int port = 0) {
  return std::make_unique<ReadyServer>(std::vector<std::string>{
      "--model=t=synthetic:tiny", "--max-request-tokens=32768", absl::StrCat("--port=", port)});
}

// Large, but quick to compute: each sequence has one token.
v1::AttendRequest LargeRequest() {
  const std::vector<float> rows(kSequences * kLength * kWidth);
  v1::AttendRequest request = AttendOf("", FloatTensor({kSequences, kLength, kWidth}, rows));
  std::vector<int64_t> kept(kSequences * kLength);
  for (int64_t b = 0; b < kSequences; ++b) kept[b * kLength] = 1;
  *request.mutable_attention_mask() = IntegerTensor({kSequences, kLength}, kept, v1::INT8);
  return request;
}

// Callers that make one call after another.
class Callers {
 public:
  explicit Callers(std::function<std::string()> call) {  // returns the call's error, or nothing
    for (int i = 0; i < kCallers; ++i) {
      threads_.emplace_back([this, call] {
        for (; !stop_; ++calls_) Keep(call());
      });
    }
  }
  ~Callers() { Stop(); }

  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  int calls() const { return calls_; }
  std::vector<std::string> errors() {
    absl::MutexLock lock(&mutex_);
    return errors_;
  }

 private:
  void Keep(std::string error) {
    if (error.empty()) return;
    absl::MutexLock lock(&mutex_);
    errors_.push_back(std::move(error));
  }

  absl::Mutex mutex_;
  std::vector<std::string> errors_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> calls_ = 0;
  std::vector<std::thread> threads_;
};

class RollingRestartTest : public testing::Test {
 protected:
  // "ipv4:127.0.0.1:8001,127.0.0.1:9001".
  std::string address() const {
    return absl::StrCat("ipv4:", servers_[0]->address(), ",", servers_[1]->address());
  }

  // Waits until the server has answered a caller, that is, until they have found it.
  static void AwaitAnswered(const ReadyServer& server) {
    const absl::Time patience = absl::Now() + absl::Minutes(1);
    while (server.Get("/metrics").find(R"(attendant_requests_total{code="OK",method="Attend")") ==
           std::string::npos) {
      ASSERT_LT(absl::Now(), patience);
      absl::SleepFor(absl::Milliseconds(5));
    }
  }

  // Restarts one server after the other under such calls.
  void Restart(const std::function<std::string()>& call) {
    Callers callers(call);
    for (const auto& server : servers_) AwaitAnswered(*server);
    for (int restart = 0; restart < kRestarts; ++restart) {
      std::unique_ptr<ReadyServer>& server = servers_[restart % 2];
      server->process().Signal(SIGTERM);
      EXPECT_EQ(server->process().AwaitEnd().code, 0);
      server = StartServer(server->port());
      AwaitAnswered(*server);
    }
    callers.Stop();
    EXPECT_THAT(callers.errors(), IsEmpty()) << "of " << callers.calls() << " calls";
  }

  std::unique_ptr<ReadyServer> servers_[2] = {StartServer(), StartServer()};
};

TEST_F(RollingRestartTest, NoCallFailsWithTheServiceConfig) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(client::RunWith({"service-config"}).out);
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, 4 << 20);
  const auto stub = v1::EncoderService::NewStub(
      grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments));
  const v1::AttendRequest request = LargeRequest();
  Restart([&]() -> std::string {
    grpc::ClientContext call;
    v1::AttendResponse response;
    const grpc::Status status = stub->Attend(&call, request, &response);
    if (status.ok()) return "";
    return absl::StrCat(status.error_code(), " ", status.error_message());
  });
}

TEST_F(RollingRestartTest, NoCallOfTheLibraryFails) {
  const client::Client client = client::Client::Connect(address());
  const v1::AttendRequest large = LargeRequest();
  Restart([&]() -> std::string {
    client::AttendRequest request;
    request.hidden_states = {
        client::DataType::kFloat32, {kSequences, kLength, kWidth}, large.hidden_states().data()};
    request.attention_mask = {
        client::DataType::kInt8, {kSequences, kLength}, large.attention_mask().data()};
    const absl::Status status = client.Attend(std::move(request)).status();
    return status.ok() ? "" : status.ToString();
  });
}

}  // namespace rolling_restart_test
}  // namespace attendant::server
