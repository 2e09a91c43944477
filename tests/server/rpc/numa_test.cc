// Tests of instances on two NUMA nodes, each of which is one CPU of this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "server/host/node_binding.h"
#include "tests/server/support/pending_attend.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace numa_test {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

ThreadPlan TwoNodes() {
  const CpuList cpus = AllowedCpus();
  return {.instances = 2,
          .threads_per_instance = 2,
          .nodes = {{4, {cpus.front()}}, {7, {cpus.back()}}},
          .copy_of_instance = {0, 1}};
}

// Returns "tiny" with other weights in its second copy, so that answers tell which copy computed
// them.
ServedModels TellingCopies() {
  ServedModel model = *TestModels().at("tiny");
  absl::StatusOr<Checkpoint> other = OpenCheckpoint("synthetic:tiny@2", {});
  model.further_copies = {
      *Encoder::Load(other->description, *other->weights, [](int64_t, int64_t) {})};
  return {{"tiny", std::make_shared<ServedModel>(std::move(model))}};
}

// Returns the CPUs of each thread of this process that has this name, which instances and their
// teams give their threads.
std::vector<std::string> CpusOfThreads(const std::string& name) {
  std::vector<std::string> cpus;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string field, value, called;
    for (std::string line; std::getline(status, line);) {
      const size_t colon = line.find(":\t");
      if (colon == line.npos) continue;
      if (line.substr(0, colon) == "Name") called = line.substr(colon + 2);
      if (line.substr(0, colon) == "Cpus_allowed_list" && called == name) {
        cpus.push_back(line.substr(colon + 2));
      }
    }
  }
  return cpus;
}

v1::AttendRequest Request() {
  std::vector<float> values(16 * 32);
  std::iota(values.begin(), values.end(), 0.0f);
  return AttendOf("tiny", FloatTensor({4, 4, 32}, values));
}

class NumaTest : public testing::Test {
 protected:
  static TestServerOptions Options() {
    TestServerOptions options;
    options.models = TellingCopies();
    options.thread_plan = TwoNodes();
    options.gate_closed = true;
    return options;
  }

  // Sends one request to each instance, at the same time.
  void RunOnBoth() {
    PendingAttend first(server_.stub(), Request());
    server_.gate().AwaitBlocked(1);
    PendingAttend second(server_.stub(), Request());
    server_.gate().AwaitBlocked(2);
    server_.gate().Open();
    for (PendingAttend* call : {&first, &second}) {
      ASSERT_TRUE(call->Wait().ok()) << call->Wait().error_message();
      answers_.push_back(call->response().output().data());
    }
  }

  TestServer server_{Options()};
  std::vector<std::string> answers_;
};

TEST_F(NumaTest, AnInstanceAndItsTeamStayOnTheirNode) {
  RunOnBoth();
  const ThreadPlan plan = TwoNodes();
  for (int i = 0; i < plan.instances; ++i) {
    EXPECT_THAT(CpusOfThreads("instance-" + std::to_string(i)),
                AllOf(SizeIs(2), Each(ToString(plan.nodes[i].cpus))));
  }
}

TEST_F(NumaTest, AnInstanceComputesWithTheCopyOfItsNode) {
  RunOnBoth();
  EXPECT_NE(answers_[0], answers_[1]);
}

TEST_F(NumaTest, GetModelTellsTheNodes) {
  server_.gate().Open();
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_model("tiny");
  v1::GetModelResponse response;
  ASSERT_TRUE(server_.stub().GetModel(&context, request, &response).ok());
  EXPECT_THAT(response.thread_plan().instance_nodes(), ElementsAre(4, 7));
}

// Threads that cannot be bound, because the container has lost the CPUs, still compute.
TEST(NumaBindingTest, WithoutItsCpusAThreadRunsAnywhere) {
  const CpuList before = AllowedCpus();
  BindToNode({3, {60000}});
  EXPECT_EQ(AllowedCpus(), before);
}

}  // namespace numa_test
}  // namespace attendant::server
