// Tests of models that come and go while the real process serves.
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace repository_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kSwaps = 20;
constexpr int kCallers = 2;

// A folder of checkpoints whose answers depend on the version.
class Repository {
 public:
  const std::string& path() const { return folder_.path(); }

  void Add(const std::string& model, int64_t version) const {
    std::vector<TestTensor> tensors = TinyBertTensors();
    for (TestTensor& tensor : tensors) {
      if (tensor.name != "encoder.layer.1.output.LayerNorm.bias") continue;
      tensor.bytes = Encode(std::vector<float>(4, static_cast<float>(version)), "F32");
    }
    AddFiles(model, version, TinyBertConfig(), MakeSafetensors(tensors));
  }
  void AddBroken(const std::string& model, int64_t version) const {
    AddFiles(model, version, TinyBertConfig(), MakeSafetensors({MakeTensor("other", {4})}));
  }
  void Remove(const std::string& path) const { std::filesystem::remove_all(folder_.File(path)); }

 private:
  // As operators should: elsewhere first, then into place at once.
  void AddFiles(const std::string& model, int64_t version, const std::string& config,
                const std::string& weights) const {
    const std::string staging = absl::StrCat(".staging/", version);
    folder_.Write(staging + "/config.json", config);
    folder_.Write(staging + "/model.safetensors", weights);
    std::filesystem::create_directories(folder_.File(model));
    std::filesystem::rename(folder_.File(staging), folder_.File(absl::StrCat(model, "/", version)));
  }

  TempFolder folder_;
};

v1::Tensor Rows(int64_t rows) { return FloatTensor({1, rows, 4}, TestValues("rows", rows * 4)); }

class RepositoryTest : public testing::Test {
 protected:
  void Start(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> all = {"--model-repository=" + repository_.path(),
                                    "--repository-poll=10ms", "--row-plan=team"};
    all.insert(all.end(), flags.begin(), flags.end());
    server_ = std::make_unique<ReadyServer>(all);
    stub_ = server_->NewStub();
  }

  std::string AwaitLine(const std::string& text) { return server_->process().AwaitLine(text); }
  void AwaitServed(int64_t version) {
    AwaitLine(absl::StrCat("model m: serving version ", version, ","));
  }

  grpc::Status Encode(v1::EncodeResponse& response) const {
    v1::EncodeRequest request;
    request.set_model("m");
    *request.mutable_hidden_states() = Rows(3);
    grpc::ClientContext call;
    return stub_->Encode(&call, request, &response);
  }
  // Returns the version that answers.
  int64_t Version() const {
    v1::EncodeResponse response;
    const grpc::Status status = Encode(response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.execution().model_version();
  }

  std::string PutMemory() const {
    v1::PutMemoryRequest request;
    request.set_model("m");
    *request.mutable_memory()->mutable_hidden_states() = Rows(2);
    v1::PutMemoryResponse response;
    grpc::ClientContext call;
    const grpc::Status status = stub_->PutMemory(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.handle();
  }
  grpc::Status AttendTo(const std::string& handle, v1::AttendResponse& response) const {
    v1::AttendRequest request = AttendOf("m", Rows(3));
    request.set_memory_handle(handle);
    grpc::ClientContext call;
    return stub_->Attend(&call, request, &response);
  }

  std::vector<std::string> Models() const {
    v1::ListModelsResponse response;
    grpc::ClientContext call;
    EXPECT_TRUE(stub_->ListModels(&call, {}, &response).ok());
    return {response.names().begin(), response.names().end()};
  }

  // Returns the answer of GetModel.
  v1::GetModelResponse Described() const {
    v1::GetModelRequest request;
    request.set_model("m");
    v1::GetModelResponse response;
    grpc::ClientContext call;
    const grpc::Status status = stub_->GetModel(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  Repository repository_;
  std::unique_ptr<ReadyServer> server_;
  std::unique_ptr<v1::EncoderService::Stub> stub_;
};

std::vector<std::string> With(std::vector<std::string> flags, const std::string& another) {
  flags.push_back(another);
  return flags;
}

// What callers have seen. Thread-safe.
class Answers {
 public:
  void Add(const grpc::Status& status, const v1::EncodeResponse& response) {
    absl::MutexLock lock(&mutex_);
    if (!status.ok()) {
      problems_.push_back(status.error_message());
      return;
    }
    const std::string& bits = response.hidden_states().data();
    const auto [entry, is_new] =
        by_version_.try_emplace(response.execution().model_version(), bits);
    if (entry->second != bits) problems_.push_back(absl::StrCat("bits of ", entry->first));
  }
  std::vector<std::string> problems() {
    absl::MutexLock lock(&mutex_);
    return problems_;
  }
  // All answers of a version had these bits.
  std::map<int64_t, std::string> by_version() {
    absl::MutexLock lock(&mutex_);
    return by_version_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> problems_;
  std::map<int64_t, std::string> by_version_;
};

TEST_F(RepositoryTest, SwapsUnderCallsWithoutFailure) {
  repository_.Add("m", 1);
  Start({"--drain-timeout=50ms"});
  Answers answers;
  std::atomic<bool> stop = false;
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      while (!stop) {
        v1::EncodeResponse response;
        const grpc::Status status = Encode(response);
        answers.Add(status, response);
      }
    });
  }
  for (int64_t version = 2; version <= 1 + kSwaps; ++version) {
    repository_.Add("m", version);
    AwaitServed(version);
    EXPECT_EQ(Version(), version);
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(answers.problems(), IsEmpty());
  const std::map<int64_t, std::string> by_version = answers.by_version();
  for (auto one = by_version.begin(); one != by_version.end(); ++one) {
    for (auto other = std::next(one); other != by_version.end(); ++other) {
      EXPECT_NE(one->second, other->second) << one->first << " and " << other->first;
    }
  }
}

TEST_F(RepositoryTest, TheCacheHasNoResultOfAnotherVersion) {
  repository_.Add("m", 1);
  Start({"--cache-bytes=1MiB", "--drain-timeout=50ms"});
  v1::EncodeRequest request;
  request.set_model("m");
  *request.mutable_hidden_states() = Rows(3);
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  request.set_pooling(v1::MEAN);
  const auto encode = [&](int64_t version) {
    v1::EncodeResponse response;
    grpc::ClientContext call;
    const grpc::Status status = stub_->Encode(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.execution().model_version(), version);
    return response;
  };
  std::map<std::string, int64_t> versions;
  for (int64_t version = 1; version <= 3; ++version) {
    if (version > 1) {
      repository_.Add("m", version);
      AwaitServed(version);
    }
    const v1::EncodeResponse computed = encode(version);
    const v1::EncodeResponse found = encode(version);
    EXPECT_EQ(computed.execution().cached_sequences(), 0);
    EXPECT_EQ(found.execution().cached_sequences(), 1);
    EXPECT_EQ(computed.pooled().data(), found.pooled().data());
    EXPECT_TRUE(versions.emplace(computed.pooled().data(), version).second);
  }
  // Loaded anew, it could have other weights.
  repository_.Remove("m/3");
  AwaitServed(2);
  EXPECT_EQ(encode(2).execution().cached_sequences(), 0);
  EXPECT_EQ(encode(2).execution().cached_sequences(), 1);
}

TEST_F(RepositoryTest, ABrokenVersionChangesNothingAndSaysWhy) {
  repository_.Add("m", 1);
  Start();
  repository_.AddBroken("m", 2);
  EXPECT_THAT(AwaitLine("version 2 not served"),
              AllOf(HasSubstr("model m: "), HasSubstr("missing; expected [10, 4]")));
  EXPECT_EQ(Version(), 1);
  const v1::GetModelResponse described = Described();
  EXPECT_EQ(described.model_version(), 1);
  ASSERT_EQ(described.refused_versions_size(), 1);
  EXPECT_EQ(described.refused_versions(0).version(), 2);
  EXPECT_THAT(described.refused_versions(0).reason(),
              AllOf(StartsWith("m/2: 37 problems: "), HasSubstr("missing; expected [10, 4]"),
                    Not(HasSubstr(repository_.path()))));
  server_->ExpectMetrics(
      AllOf(HasSubstr(R"(attendant_model_loads_total{model="m",result="ok"} 1)"),
            HasSubstr(R"(attendant_model_loads_total{model="m",result="failed"} 1)")));
  repository_.Add("m", 3);
  AwaitServed(3);
  EXPECT_EQ(Version(), 3);
}

TEST_F(RepositoryTest, AModelWithoutAGoodVersionSaysWhy) {
  repository_.AddBroken("m", 3);
  Start();
  v1::GetModelRequest request;
  request.set_model("m");
  v1::GetModelResponse described;
  grpc::ClientContext call;
  const grpc::Status status = stub_->GetModel(&call, request, &described);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(
      status.error_message(),
      AllOf(StartsWith("model: not found (no model is named \"m\"); version 3 was refused: "),
            Not(HasSubstr(repository_.path()))));
}

// The limit leaves room for two versions and a half.
TEST_F(RepositoryTest, AVersionThatDoesNotFitBesideTheOthersIsRefusedUntilItDoes) {
  // With so large requests the process is small beside the limit, even with AddressSanitizer.
  const std::vector<std::string> flags = {"--max-request-tokens=1048576", "--repository-width=4",
                                          "--max-queue-tokens=1048576"};
  repository_.Add("m", 1);
  constexpr int64_t kGiB = int64_t{1} << 30, kConnections = int64_t{64} << 20;
  Start(With(flags, absl::StrCat("--memory-limit-bytes=", kGiB)));
  const int64_t of_version =
      kGiB - kConnections - Metric(*server_, "attendant_budget_bytes") / 4 * 5;
  const int64_t of_requests = 2 * Described().limits().max_request_bytes() / 4 * 5;
  repository_.Add("other", 1);
  Start(With(flags, absl::StrCat("--memory-limit-bytes=",
                                 kConnections + of_requests + of_version / 2 * 5)));
  repository_.Add("m", 2);
  EXPECT_THAT(AwaitLine("model m: version 2 not served: "),
              AllOf(HasSubstr("needs "), HasSubstr(" of memory, but "), HasSubstr(" available")));
  EXPECT_EQ(Version(), 1);
  repository_.Remove("other");
  AwaitServed(2);
  EXPECT_EQ(Version(), 2);
}

TEST_F(RepositoryTest, ModelsComeAndGo) {
  Start();
  EXPECT_THAT(Models(), IsEmpty());
  v1::EncodeResponse response;
  EXPECT_EQ(Encode(response).error_code(), grpc::StatusCode::NOT_FOUND);
  repository_.Add("m", 1);
  repository_.Add("m", 2);
  AwaitServed(2);
  EXPECT_THAT(Models(), ElementsAre("m"));
  EXPECT_EQ(Version(), 2);
  v1::GetModelResponse described;
  grpc::ClientContext call;
  ASSERT_TRUE(stub_->GetModel(&call, {}, &described).ok());
  EXPECT_EQ(described.model_version(), 2);
  server_->ExpectMetrics(HasSubstr(R"(model="m",version="2"} 1)"));
  repository_.Remove("m/2");
  AwaitServed(1);
  EXPECT_EQ(Version(), 1);
  server_->ExpectMetrics(
      AllOf(HasSubstr(R"(model="m",version="1"} 1)"), Not(HasSubstr(R"(model="m",version="2"})"))));
  repository_.Remove("m");
  AwaitLine("model m: serving no version");
  server_->ExpectMetrics(
      AllOf(Not(HasSubstr("attendant_model_info{")), Not(HasSubstr("attendant_model_bytes{"))));
  EXPECT_THAT(Models(), IsEmpty());
  EXPECT_EQ(Encode(response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RepositoryTest, RegisteredKeysKeepTheirVersion) {
  repository_.Add("m", 1);
  Start({"--drain-timeout=1h"});
  const std::string handle = PutMemory();
  v1::AttendResponse before, after;
  ASSERT_TRUE(AttendTo(handle, before).ok());
  repository_.Add("m", 2);
  AwaitServed(2);
  ASSERT_TRUE(AttendTo(handle, after).ok());
  EXPECT_EQ(after.execution().model_version(), 1);
  EXPECT_EQ(after.output().data(), before.output().data());
  EXPECT_EQ(Version(), 2);
}

TEST_F(RepositoryTest, RegisteredKeysOfARetiredVersionAreRefused) {
  repository_.Add("m", 1);
  Start({"--drain-timeout=10ms"});
  const std::string handle = PutMemory();
  repository_.Add("m", 2);
  AwaitLine("model m: retired version 1");
  v1::AttendResponse response;
  const grpc::Status status = AttendTo(handle, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(),
            "memory_handle: the version of model \"m\" that made it is no longer served");
  server_->ExpectMetrics(HasSubstr("attendant_registered_memories 0"));
  EXPECT_TRUE(AttendTo(PutMemory(), response).ok());
}

TEST_F(RepositoryTest, StandsBesideModelsWithoutVersions) {
  repository_.Add("m", 4);
  Start({"--model=t=synthetic:tiny"});
  EXPECT_THAT(Models(), ElementsAre("m", "t"));
  EXPECT_EQ(Version(), 4);
  v1::GetModelRequest request;
  request.set_model("t");
  v1::GetModelResponse described;
  grpc::ClientContext call;
  ASSERT_TRUE(stub_->GetModel(&call, request, &described).ok());
  EXPECT_EQ(described.model_version(), 0);
}

TEST_F(RepositoryTest, ItsNamesAreNotThoseOfOtherModels) {
  repository_.Add("m", 1);
  ServerProcess server({"--address=127.0.0.1", "--port=0", "--http-port=0",
                        "--model=m=synthetic:tiny", "--model-repository=" + repository_.path()});
  const ServerProcess::End end = server.AwaitEnd();
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.lines,
              ElementsAre(absl::StrCat("attendant-server: --model m and --model-repository ",
                                       repository_.path(), "/m: expected two different names")));
}

TEST(RepositoryStartTest, AFolderThatIsNotThereIsRefused) {
  ServerProcess server(
      {"--address=127.0.0.1", "--port=0", "--http-port=0", "--model-repository=/nowhere"});
  const ServerProcess::End end = server.AwaitEnd();
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.lines,
              ElementsAre("attendant-server: --model-repository: /nowhere: No such file or "
                          "directory"));
}

}  // namespace repository_test
}  // namespace attendant::server
