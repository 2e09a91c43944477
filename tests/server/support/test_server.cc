#include "tests/server/support/test_server.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "server/execution/batch_executor.h"
#include "server/execution/prepare_model.h"
#include "tests/support/memory_weights.h"

namespace attendant::server {
namespace {

template <typename T>
T OrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(std::string(value.status().message()));
  return *std::move(value);
}

void AddModel(const std::string& name, const ModelDescription& description, WeightSource& weights,
              std::vector<std::string> unused, ServedModels& models) {
  auto encoder = OrThrow(Encoder::Load(description, weights, [](int64_t, int64_t) {}));
  models[name] = std::make_shared<ServedModel>(name, encoder, std::move(unused));
  models[name]->cost->SetRates({});  // so that no test has to wait for trials
}

void AddCheckpoint(const std::string& name, const std::string& source, ServedModels& models) {
  Checkpoint checkpoint = OrThrow(OpenCheckpoint(source, {}));
  AddModel(name, checkpoint.description, *checkpoint.weights, {"cls.bias"}, models);
}

ServedModels MakeModels() {
  ServedModels models;
  AddCheckpoint("tiny", "synthetic:tiny", models);
  AddCheckpoint("bare", "worked-example", models);
  ModelDescription counting = models["tiny"]->encoder->description();
  counting.family = "counting";
  counting.pooling.reset();
  counting.embeddings->position_rule = PositionRule::kCountNotPadding;
  counting.embeddings->first_position = 2;
  counting.embeddings->token_types = 0;
  counting.classifier = {.modes = {PoolingMode::kFirstToken},
                         .dense_width = 32,
                         .dense_activation = Activation::kTanh,
                         .output_width = 3};
  test_support::MemoryWeights weights = test_support::RandomWeights(counting, 7);
  AddModel("counting", counting, weights, {}, models);
  ModelDescription patches = models["tiny"]->encoder->description();
  patches.family = "patches";
  patches.pooling.reset();
  patches.embeddings.reset();
  patches.layer.relative_positions.kind = RelativePositions::kAlibi;
  patches.layer.attention.window = 4;
  patches.layer.attention.pattern = {
      .first_global = 1, .full_up_to = 2, .listed = BlockLists({{9, 2}, {4, 11}}, {30})};
  patches.SplitShapes();
  patches.layer_shapes[0].attention.window = 0;
  patches.layer_shapes[0].attention.pattern = {};
  patches.patch_embedding = {
      .has_class = true, .registers = 2, .positions = 4, .needs_every = true};
  test_support::MemoryWeights patch_weights = test_support::RandomWeights(patches, 8);
  AddModel("patches", patches, patch_weights, {}, models);
  ModelDescription linear = models["tiny"]->encoder->description();
  linear.family = "linear";
  linear.layer.attention.kind = AttentionKind::kLinear;
  test_support::MemoryWeights linear_weights = test_support::RandomWeights(linear, 9);
  AddModel("linear", linear, linear_weights, {}, models);
  linear.family = "mixed";
  linear.layer.attention.kind = AttentionKind::kLinformer;
  linear.layer.attention.linformer.keys = linear.layer.attention.linformer.positions = 2;
  test_support::MemoryWeights mixed_weights = test_support::RandomWeights(linear, 9);
  AddModel("mixed", linear, mixed_weights, {}, models);
  return models;
}

// Polls until the condition holds, since nothing signals it.
template <typename Condition>
void AwaitCondition(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace

void BatchGate::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

void BatchGate::Open() {
  std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

void BatchGate::AwaitBlocked(int instances) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return blocked_ >= instances; });
}

void BatchGate::Pass() {
  std::unique_lock lock(mutex_);
  ++blocked_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !closed_; });
  --blocked_;
  ++passed_;
}

int BatchGate::passed() const {
  std::lock_guard lock(mutex_);
  return passed_;
}

ServiceLimits TestServerOptions::SmallLimits() {
  ServiceLimits limits;
  limits.max_request_tokens = 256;
  limits.max_batch_tokens = 128;
  limits.max_request_bytes = int64_t{1} << 20;
  limits.max_answer_bytes = int64_t{1} << 20;
  limits.stream_window = 4;
  limits.max_registered_bytes = int64_t{1} << 20;
  return limits;
}

const ServedModels& TestModels() {
  static const ServedModels models = MakeModels();
  return models;
}

ServedModels ModelOf(const std::string& name, const ModelDescription& description) {
  ServedModels models;
  test_support::MemoryWeights weights = test_support::RandomWeights(description, 9);
  AddModel(name, description, weights, {}, models);
  return models;
}

TestServer::TestServer(TestServerOptions options)
    : models_(PrepareModels(
          options.models.empty() ? TestModels() : options.models,
          std::max(options.limits.max_batch_tokens, options.limits.max_request_tokens),
          options.thread_plan, RealClock())),
      metrics_("test", "isa", "onednn"),
      admission_(options.admission),
      queue_(RealClock(), options.queue,
             {.max_batch_tokens = options.limits.max_batch_tokens,
              .max_batch_seconds = options.limits.max_batch_seconds,
              .instances = options.thread_plan.instances}),
      cross_kv_(*options.memory_clock, options.limits.max_registered_bytes,
                options.limits.max_registered_age, &admission_.memory()),
      cache_(ResultCache::Make(options.cache_bytes)),
      service_(ServiceContext{models_,
                              admission_,
                              queue_,
                              metrics_,
                              cross_kv_,
                              RealClock(),
                              *workers_,
                              options.limits,
                              options.thread_plan,
                              {},
                              cache_.get()}) {
  if (options.gate_closed) gate_.Close();
  instances_ = std::make_unique<InstancePool>(
      queue_, options.thread_plan.instances, [this](int instance) -> RunBatch {
        return [this, run = MakeRunner(service_.context(), instance)](const Batch& batch) {
          gate_.Pass();
          run(batch);
        };
      });
  listener_ = OrThrow(ConnectionListener::Bind("127.0.0.1", 0, {}));
  grpc_ = OrThrow(StartGrpcServer(service_, *listener_, int64_t{256} << 20));
  channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port()),
                                 grpc::InsecureChannelCredentials());
  // gRPC 1.51.1 takes whatever errno is after some allocations for that of connect(), so that now
  // and then a connection seems to fail. It tries again, for which calls do not wait.
  if (!channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::minutes(1))) {
    throw std::runtime_error("no connection to the test's server");
  }
  stub_ = v1::EncoderService::NewStub(channel_);
}

TestServer::~TestServer() { Stop(); }

void TestServer::Stop(std::chrono::milliseconds grace) {
  if (grpc_ == nullptr) return;
  gate_.Open();
  listener_->Close();
  admission_.Close();
  queue_.Close();
  grpc_->Shutdown(std::chrono::system_clock::now() + grace);
  instances_.reset();
  workers_.reset();
  grpc_.reset();
}

void TestServer::AwaitQueued(int64_t jobs) const {
  AwaitCondition([&] { return queue_.counts().jobs == jobs; });
}

void TestServer::AwaitInflight(int64_t slots) const {
  AwaitCondition([&] { return admission_.slots().counts().all() == slots; });
}

void TestServer::AwaitStreams(int64_t streams) const {
  AwaitCondition([&] { return admission_.streams().counts().all() == streams; });
}

void TestServer::AwaitNothingReceiving() const {
  AwaitCondition([&] { return admission_.memory().counts().held_for(HeldFor::kReceiving) == 0; });
}

void TestServer::AwaitReceiving(int64_t bytes) const {
  AwaitCondition(
      [&] { return admission_.memory().counts().held_for(HeldFor::kReceiving) >= bytes; });
}

grpc::Status TestServer::Attend(const v1::AttendRequest& request, v1::AttendResponse* response) {
  grpc::ClientContext context;
  return stub_->Attend(&context, request, response);
}

grpc::Status TestServer::Encode(const v1::EncodeRequest& request, v1::EncodeResponse* response) {
  grpc::ClientContext context;
  return stub_->Encode(&context, request, response);
}

}  // namespace attendant::server
