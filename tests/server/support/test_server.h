// TestServer, the service over a real socket with small models.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "server/admission/admission.h"
#include "server/batching/batch_queue.h"
#include "server/batching/instance_pool.h"
#include "server/execution/compute_job.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call_dispatcher.h"
#include "server/rpc/grpc_server.h"

namespace attendant::server {

// Holds the instances before they compute a batch, so that a test can decide what is queued in the
// meantime. Thread-safe.
class BatchGate {
 public:
  void Close();
  void Open();
  // Blocks until this many instances have taken a batch and are held.
  void AwaitBlocked(int instances = 1);
  // Called by an instance for each batch.
  void Pass();
  // Returns the number of batches that have passed.
  int passed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int blocked_ = 0;
  int passed_ = 0;
};

struct TestServerOptions {
  ServiceLimits limits = SmallLimits();
  AdmissionLimits admission = {};
  QueueLimits queue = {};
  Clock* memory_clock = &RealClock();
  ServedModels models = {};  // empty: TestModels()
  ThreadPlan thread_plan = {1, 2};
  int64_t cache_bytes = 0;  // 0: there is no cache
  bool gate_closed = false;

  static ServiceLimits SmallLimits();
};

// Returns these models. "tiny" has 2 layers, E = 32, H = 4, 100 words, 64 positions, 2 token types
// and mean pooling. "patches" is like it, but has no embeddings; it puts a class token and two
// registers before three features, and has ALiBi and a window of 4 in its second layer. "counting"
// is like "tiny", but has positions that count tokens other than padding, which is 1, from 2, no
// pooling, no token types, and a head for three classes. "bare" takes hidden states only and has
// one layer that ends with its context: E = 4, C = 3.
const ServedModels& TestModels();

// Returns one model with random weights.
ServedModels ModelOf(const std::string& name, const ModelDescription& description);

// Owns the server, which is started as the application starts it, and a channel to it.
class TestServer {
 public:
  explicit TestServer(TestServerOptions options = {});
  ~TestServer();

  v1::EncoderService::Stub& stub() { return *stub_; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }
  int port() const { return listener_->port(); }
  Admission& admission() { return admission_; }
  BatchQueue& queue() { return queue_; }
  ModelTable& models() { return models_; }
  CrossKvStore& cross_kv() { return cross_kv_; }
  ResultCache& cache() { return *cache_; }
  BatchGate& gate() { return gate_; }
  CallDispatcher& service() { return service_; }
  std::string Scrape() const { return metrics_.Scrape({}); }
  // Expects that the metrics become such; an answer leaves before it is counted.
  template <typename Matcher>
  void ExpectMetrics(const Matcher& matcher) const {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!testing::Value(Scrape(), matcher) && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
    }
    EXPECT_THAT(Scrape(), matcher);
  }

  // Each blocks until its condition holds: this many jobs wait in the queue, this many slots are
  // taken, this many streams are open, no permit is held, or bodies that are received are charged
  // with at least this many bytes.
  void AwaitQueued(int64_t jobs) const;
  void AwaitInflight(int64_t slots) const;
  void AwaitStreams(int64_t streams) const;
  void AwaitNothingReceiving() const;
  void AwaitReceiving(int64_t bytes) const;

  grpc::Status Attend(const v1::AttendRequest& request, v1::AttendResponse* response);
  grpc::Status Encode(const v1::EncodeRequest& request, v1::EncodeResponse* response);

  // Ends the server as the application does. The destructor calls it if the test has not.
  void Stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

 private:
  BatchGate gate_;
  ModelTable models_;
  ServerMetrics metrics_;
  Admission admission_;
  BatchQueue queue_;
  CrossKvStore cross_kv_;
  const std::unique_ptr<ResultCache> cache_;
  std::unique_ptr<WorkerThreads> workers_ = std::make_unique<WorkerThreads>(2);
  CallDispatcher service_;
  std::unique_ptr<InstancePool> instances_;
  std::unique_ptr<ConnectionListener> listener_;
  std::unique_ptr<grpc::Server> grpc_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::EncoderService::Stub> stub_;
};

}  // namespace attendant::server
