// The service over a real socket, with small models.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "server/admission/admission.h"
#include "server/batching/batch_queue.h"
#include "server/batching/instance_pool.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/encoder_service.h"

namespace attendant::server {

// Holds the instances before they compute a batch, so that a test decides what is queued meanwhile.
class BatchGate {
 public:
  void Close();
  void Open();
  // Blocks until so many instances have taken a batch and wait with it.
  void AwaitBlocked(int instances = 1);
  // Called by an instance with each batch.
  void Pass();
  // Batches that have passed.
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
  AdmissionLimits admission = {.max_inflight = 64, .receive_memory_bytes = int64_t{64} << 20};
  QueueLimits queue = {};
  CrossKvStoreLimits cross_kv = {.max_bytes = int64_t{1} << 20};
  Clock* memory_clock = &RealClock();
  ServedModels models = {};  // none: those of TestModels()
  ThreadPlan thread_plan = {1, 2};
  bool gate_closed = false;

  static ServiceLimits SmallLimits();
};

// "tiny" (2 layers, E = 32, H = 4, 100 words, 64 positions, 2 token types, mean pooling),
// "patches" (like it, without embeddings; a class token and two registers before three features,
// ALiBi, and a window of 4 in the second layer), "counting" (like "tiny", with positions that count
// kept tokens from 2, no pooling, no token types, and a head for three classes), "bare" (hidden
// states only, one layer that ends with its context: E = 4, C = 3).
const ServedModels& TestModels();

// One model with random weights.
ServedModels ModelOf(const std::string& name, const ModelDescription& description);

class TestServer {
 public:
  explicit TestServer(TestServerOptions options = {});
  ~TestServer();

  v1::EncoderService::Stub& stub() { return *stub_; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }
  int port() const { return port_; }
  Admission& admission() { return admission_; }
  BatchQueue& queue() { return queue_; }
  CrossKvStore& cross_kv() { return cross_kv_; }
  BatchGate& gate() { return gate_; }
  EncoderService& service() { return service_; }
  std::string Scrape() const { return metrics_.Scrape({}); }

  // Blocks until so many jobs wait in the queue, so many slots are taken, no permit is held.
  void AwaitQueued(int64_t jobs) const;
  void AwaitInflight(int64_t slots) const;
  void AwaitNothingReceiving() const;

  grpc::Status Attend(const v1::AttendRequest& request, v1::AttendResponse* response);
  grpc::Status Encode(const v1::EncodeRequest& request, v1::EncodeResponse* response);

  // Ends the server as the application does; done by the destructor if not before.
  void Stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

 private:
  BatchGate gate_;
  const ServedModels models_;
  ServerMetrics metrics_;
  Admission admission_;
  BatchQueue queue_;
  CrossKvStore cross_kv_;
  EncoderService service_;
  std::unique_ptr<InstancePool> instances_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::EncoderService::Stub> stub_;
};

}  // namespace attendant::server
