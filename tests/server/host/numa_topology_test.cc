#include "server/host/numa_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace attendant {

static bool operator==(const NumaNode& a, const NumaNode& b) {
  return a.id == b.id && a.cpus == b.cpus;
}

static void PrintTo(const NumaNode& node, std::ostream* out) {
  *out << "node " << node.id << " with CPUs " << ToString(node.cpus);
}

namespace numa_topology_test {

using testing::ElementsAre;

class NumaTopologyTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(root_);
    nodes_ = root_;
    status_ = root_ / "status";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  // CPUs from 1000 on, on none of which this test runs.
  std::vector<NumaNode> Find(const CpuList& allowed) {
    return FindNumaNodes(allowed, nodes_, status_);
  }
  void ExpectOneNode(const CpuList& allowed) {
    EXPECT_THAT(Find(allowed), ElementsAre(NumaNode{0, allowed}));
  }

  std::filesystem::path root_;
  std::string nodes_, status_;
};

TEST_F(NumaTopologyTest, WithoutFilesThereIsOneNode) {
  nodes_ = status_ = root_ / "none";
  ExpectOneNode({1000, 1003});
}

TEST_F(NumaTopologyTest, OneNodeHasAllAllowedCpus) {
  Write("node0/cpulist", "1000-1003\n");
  ExpectOneNode({1001, 1002});
}

TEST_F(NumaTopologyTest, EachNodeHasItsAllowedCpus) {
  Write("node0/cpulist", "1000-1001,1004-1005\n");
  Write("node1/cpulist", "1002-1003,1006-1007\n");
  Write("possible", "0-1\n");  // the folder also has files of other names
  Write("nodes/cpulist", "7\n");
  EXPECT_THAT(Find({1000, 1001, 1003, 1004, 1006}),
              ElementsAre(NumaNode{0, {1000, 1001, 1004}}, NumaNode{1, {1003, 1006}}));
}

TEST_F(NumaTopologyTest, NodesWithoutAllowedOrWithoutAnyCpusAreNone) {
  Write("node0/cpulist", "1000-1001\n");
  Write("node1/cpulist", "1002-1003\n");
  Write("node2/cpulist", "\n");  // a node with memory but without CPUs
  Write("node10/cpulist", "1004\n");
  EXPECT_THAT(Find({1000, 1001, 1004}),
              ElementsAre(NumaNode{0, {1000, 1001}}, NumaNode{10, {1004}}));
}

TEST_F(NumaTopologyTest, AffinityWithinOneNodeIsThatNode) {
  Write("node0/cpulist", "1000-1001\n");
  Write("node1/cpulist", "1002-1003\n");
  EXPECT_THAT(Find({1002, 1003}), ElementsAre(NumaNode{1, {1002, 1003}}));
}

TEST_F(NumaTopologyTest, CpusWithoutMemoryBelongToTheNearestNodeWithMemory) {
  Write("has_memory", "0,2\n");
  Write("node0/cpulist", "1000\n");
  Write("node1/cpulist", "1001\n");
  Write("node2/cpulist", "1003\n");
  Write("node3/cpulist", "1002\n");
  Write("node1/distance", "20 10 16 16\n");
  Write("node3/distance", "\n");  // no distances: the first node
  EXPECT_THAT(Find({1000, 1001, 1002, 1003}),
              ElementsAre(NumaNode{0, {1000, 1002}}, NumaNode{2, {1001, 1003}}));
}

TEST_F(NumaTopologyTest, MemoryThatIsNotAllowedIsNone) {
  Write("has_memory", "0-2\n");
  Write("status", "Name:\tserver\nMems_allowed_list:\t1-2\n");
  Write("node0/cpulist", "1000\n");
  Write("node1/cpulist", "1001\n");
  Write("node2/cpulist", "1002\n");
  Write("node0/distance", "10 20 12\n");
  EXPECT_THAT(Find({1000, 1001, 1002}),
              ElementsAre(NumaNode{1, {1001}}, NumaNode{2, {1000, 1002}}));
  Write("status", "Mems_allowed_list:\t1\n");
  ExpectOneNode({1000, 1001, 1002});
}

TEST_F(NumaTopologyTest, WhatIsMalformedOrIncompleteIsOneNode) {
  Write("node0/cpulist", "1000-\n");
  Write("node1/cpulist", "1001\n");
  ExpectOneNode({1000, 1001});
  Write("node0/cpulist", "1000\n");
  EXPECT_EQ(Find({1000, 1001}).size(), 2u);
  ExpectOneNode({1000, 1001, 1002});  // one has come online in the meantime
  std::filesystem::remove(root_ / "node0/cpulist");
  ExpectOneNode({1000, 1001});
}

TEST_F(NumaTopologyTest, BeginsWhereTheThreadRuns) {
  const int here = AllowedCpus().front();
  const CpuList before = AllowedCpus();
  ASSERT_TRUE(BindThread({here}).ok());
  Write("node0/cpulist", "1000\n");
  Write("node1/cpulist", "1001\n");
  Write("node2/cpulist", std::to_string(here) + "\n");
  EXPECT_THAT(Find({here, 1000, 1001}),
              ElementsAre(NumaNode{2, {here}}, NumaNode{0, {1000}}, NumaNode{1, {1001}}));
  ASSERT_TRUE(BindThread(before).ok());
}

}  // namespace numa_topology_test
}  // namespace attendant
