#include "server/security/reloaded.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/server_metrics.h"

namespace attendant::server {
namespace reloaded_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Two files, whose value is their texts together unless one of them is "bad".
class ReloadedTest : public testing::Test {
 protected:
  ReloadedTest() {
    Write("a", "1");
    Write("b", "2");
  }
  ~ReloadedTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directory(folder_);
    std::ofstream(Path(name)) << text;
  }
  absl::StatusOr<std::unique_ptr<Reloaded<std::string>>> Load() const {
    return Reloaded<std::string>::Load(
        {Path("a"), Path("b")},
        [](const std::vector<std::string>& texts) -> absl::StatusOr<std::string> {
          if (texts[0] == "bad") return absl::InvalidArgumentError("a is bad");
          return absl::StrCat(texts[0], texts[1]);
        });
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / absl::StrCat("attendant_reloaded_", getpid());
};

TEST_F(ReloadedTest, FollowsChanges) {
  const auto loaded = Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  Reloaded<std::string>& value = **loaded;
  EXPECT_EQ(*value.current(), "12");
  const auto before = value.current();
  EXPECT_EQ(value.Reload(), absl::StatusOr<bool>(false));
  EXPECT_EQ(value.current(), before);
  Write("b", "3");
  EXPECT_EQ(value.Reload(), absl::StatusOr<bool>(true));
  EXPECT_EQ(*value.current(), "13");
  EXPECT_EQ(*before, "12");
}

TEST_F(ReloadedTest, KeepsTheLastGoodValueAndTellsAnErrorOnce) {
  const auto loaded = Load();
  ASSERT_TRUE(loaded.ok());
  Reloaded<std::string>& value = **loaded;
  Write("a", "bad");
  EXPECT_EQ(value.Reload().status(), absl::InvalidArgumentError("a is bad"));
  EXPECT_EQ(value.Reload(), absl::StatusOr<bool>(false));
  EXPECT_EQ(*value.current(), "12");
  fs::remove(Path("b"));
  EXPECT_THAT(value.Reload().status().message(), HasSubstr("b: cannot be read: No such file"));
  EXPECT_EQ(value.Reload(), absl::StatusOr<bool>(false));
  EXPECT_EQ(*value.current(), "12");
  Write("a", "4");
  Write("b", "5");
  EXPECT_EQ(value.Reload(), absl::StatusOr<bool>(true));
  EXPECT_EQ(*value.current(), "45");
}

TEST_F(ReloadedTest, DoesNotLoadBadFiles) {
  Write("a", "bad");
  EXPECT_EQ(Load().status(), absl::InvalidArgumentError("a is bad"));
  Write("a", std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(Load().status().message(), HasSubstr("a: expected at most 1048576 bytes"));
  Write("a", std::string(1 << 20, 'x'));
  EXPECT_TRUE(Load().ok());
  fs::remove_all(folder_);
  EXPECT_THAT(Load().status().message(), HasSubstr("a: cannot be read: No such file"));
}

TEST(ReportReloadTest, CountsWhatChangedAndWhatFailed) {
  ServerMetrics metrics("1", "isa", "onednn");
  for (const absl::StatusOr<bool>& changed :
       std::vector<absl::StatusOr<bool>>{false, true, absl::InvalidArgumentError("bad")}) {
    ReportReload("things", changed, metrics);
  }
  const std::string text = metrics.Scrape({});
  EXPECT_THAT(text, HasSubstr("attendant_reloads_total{result=\"ok\",what=\"things\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attendant_reloads_total{result=\"failed\",what=\"things\"} 1\n"));
}

}  // namespace reloaded_test
}  // namespace attendant::server
