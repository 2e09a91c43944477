#include "server/host/memory_limit.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace memory_limit_test {

// A folder that looks like /sys/fs/cgroup and also has a meminfo file.
class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest() { Write("meminfo", "MemTotal:       1000 kB\nMemFree:         900 kB\n"); }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  MemoryLimit Measure() const {
    return MeasureMemoryLimit({root_, root_ / "membership"}, root_ / "meminfo");
  }

 private:
  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) /
      absl::StrCat("attendant_", testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(MemoryLimitTest, TheMachinesWithoutACgroup) {
  EXPECT_EQ(Measure().bytes, 1000 * 1024);
  EXPECT_EQ(Measure().reason, "of the machine");
}

TEST_F(MemoryLimitTest, TheCgroupsOfVersion2) {
  Write("memory.max", "500000\n");
  EXPECT_EQ(Measure().bytes, 500000);
  EXPECT_EQ(Measure().reason, "of the cgroup");
}

TEST_F(MemoryLimitTest, TheCgroupsOfVersion1) {
  Write("memory/memory.limit_in_bytes", "600000\n");
  EXPECT_EQ(Measure().bytes, 600000);
}

TEST_F(MemoryLimitTest, TheLeastOfTheGroupsAroundTheProcess) {
  Write("membership", "0::/system.slice/attendant.service\n");
  Write("memory.max", "max\n");
  Write("system.slice/memory.max", "700000\n");
  Write("system.slice/attendant.service/memory.max", "800000\n");
  EXPECT_EQ(Measure().bytes, 700000);
}

TEST_F(MemoryLimitTest, ACgroupWithoutALimit) {
  Write("memory.max", "max\n");
  EXPECT_EQ(Measure().bytes, 1000 * 1024);
  Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Measure().bytes, 1000 * 1024);
}

}  // namespace memory_limit_test
}  // namespace attendant::server
