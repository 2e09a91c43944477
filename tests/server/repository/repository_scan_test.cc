#include "server/repository/repository_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant::server {
namespace repository_scan_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// Returns the versions of each model.
std::map<std::string, std::vector<int64_t>> Versions(const RepositoryScan& scan) {
  std::map<std::string, std::vector<int64_t>> versions;
  for (const auto& [name, folders] : scan.models) {
    for (const VersionFolder& folder : folders) versions[name].push_back(folder.version);
  }
  return versions;
}

class RepositoryScanTest : public testing::Test {
 protected:
  RepositoryScan Scan() { return *ScanRepository(folder_.path()); }
  std::string FilesOf(const std::string& name) { return Scan().models.at(name).front().files; }

  TempFolder folder_;
};

TEST_F(RepositoryScanTest, AnEmptyFolderHasNoModels) {
  EXPECT_THAT(Scan().models, IsEmpty());
  EXPECT_THAT(Scan().ignored, IsEmpty());
}

TEST_F(RepositoryScanTest, TheNewestVersionComesFirst) {
  for (const char* name : {"a/2/x", "a/10/x", "a/9/x", "b.c/1/x"}) folder_.Write(name, "x");
  EXPECT_THAT(Versions(Scan()),
              UnorderedElementsAre(Pair("a", ElementsAre(10, 9, 2)), Pair("b.c", ElementsAre(1))));
  EXPECT_EQ(Scan().models.at("a").front().path, folder_.File("a/10"));
}

TEST_F(RepositoryScanTest, AModelMayBeOfAnOrganization) {
  for (const char* name : {"org/a/2/x", "org/a/1/x", "org/b/1/x", "org/README", "c/1/x", "c/d/3/x",
                           "org/e/f/1/x", "lost+found/1/x"}) {
    folder_.Write(name, "x");
  }
  EXPECT_THAT(Versions(Scan()),
              UnorderedElementsAre(Pair("org/a", ElementsAre(2, 1)), Pair("org/b", ElementsAre(1)),
                                   Pair("c", ElementsAre(1))));
  EXPECT_EQ(Scan().models.at("org/a").front().path, folder_.File("org/a/2"));
  EXPECT_THAT(Scan().ignored, UnorderedElementsAre(HasSubstr("/org/README: expected a directory"),
                                                   HasSubstr("/org/e/*: expected a directory"),
                                                   HasSubstr("/c/d: expected a directory")));
}

TEST_F(RepositoryScanTest, AModelWithoutAVersionIsOneLine) {
  for (const char* name : {"a/config.json", "a/model.safetensors", "a/1_Pooling/config.json"}) {
    folder_.Write(name, "x");
  }
  EXPECT_THAT(Scan().models, IsEmpty());
  EXPECT_THAT(
      Scan().ignored,
      UnorderedElementsAre(HasSubstr("/a/*: expected a directory whose name is a positive integer"),
                           HasSubstr("/a/1_Pooling/*: expected a directory whose name is")));
}

TEST_F(RepositoryScanTest, IgnoresWhatIsNoVersionAndSaysSo) {
  for (const char* name : {"a/1/x", "a/0/x", "a/01/x", "a/-1/x", "a/+2/x", "a/1 /x", "a/new/x",
                           "a/99999999999999999999/x", "a/7", "a/.3/x"}) {
    folder_.Write(name, "x");
  }
  EXPECT_THAT(Versions(Scan()), ElementsAre(Pair("a", ElementsAre(1))));
  EXPECT_EQ(Scan().ignored.size(), 8u);
  EXPECT_THAT(Scan().ignored, testing::Each(HasSubstr("a positive integer without leading zeros")));
}

TEST_F(RepositoryScanTest, IgnoresWhatIsNoModelAndSaysSo) {
  for (const char* name : {"README", "a b/1/x", ".hidden/1/x"}) folder_.Write(name, "x");
  std::filesystem::create_directories(folder_.File("empty"));
  EXPECT_THAT(Scan().models, IsEmpty());
  EXPECT_THAT(Scan().ignored,
              UnorderedElementsAre(HasSubstr("/README: expected a directory with a model name"),
                                   HasSubstr("/a b: expected a directory with a model name")));
}

TEST_F(RepositoryScanTest, FilesTellEveryChange) {
  folder_.Write("a/1/x", "x");
  const std::string before = FilesOf("a");
  EXPECT_EQ(FilesOf("a"), before);
  folder_.Write("a/1/x", "xx");
  const std::string longer = FilesOf("a");
  EXPECT_NE(longer, before);
  folder_.Write("a/1/sub/y", "y");
  const std::string deeper = FilesOf("a");
  EXPECT_NE(deeper, longer);
  std::filesystem::last_write_time(folder_.File("a/1/sub/y"),
                                   std::filesystem::file_time_type() + std::chrono::hours(1));
  const std::string older = FilesOf("a");
  EXPECT_NE(older, deeper);
  // A file of another user may become readable.
  std::filesystem::permissions(folder_.File("a/1/x"), std::filesystem::perms::owner_all);
  EXPECT_NE(FilesOf("a"), older);
}

TEST_F(RepositoryScanTest, FollowsLinksButInNoCircle) {
  folder_.Write(".store/x", "x");
  std::filesystem::create_directories(folder_.File("a"));
  std::filesystem::create_directory_symlink(folder_.File(".store"), folder_.File("a/1"));
  std::filesystem::create_directory_symlink(folder_.File(".store"), folder_.File(".store/self"));
  EXPECT_THAT(Versions(Scan()), ElementsAre(Pair("a", ElementsAre(1))));
  const std::string before = FilesOf("a");
  folder_.Write(".store/x", "xx");
  EXPECT_NE(FilesOf("a"), before);
}

TEST_F(RepositoryScanTest, AFolderThatIsGoneIsAnError) {
  const auto scan = ScanRepository(folder_.File("gone"));
  EXPECT_EQ(scan.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(scan.status().message(), HasSubstr("/gone: "));
}

}  // namespace repository_scan_test
}  // namespace attendant::server
