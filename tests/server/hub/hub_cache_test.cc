#include "server/hub/hub_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/hub/file_lock.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant::server {
namespace hub_cache_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

const std::string kCommit(40, 'c'), kEtag(40, 'e');

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class HubCacheTest : public ::testing::Test {
 protected:
  std::string In(const std::string& path) const { return folder_.File("models--a--b/" + path); }

  TempFolder folder_;
  HubCache cache_ = HubCache(folder_.path(), "a/b");
};

TEST_F(HubCacheTest, HasTheLayoutOfTheHubsLibrary) {
  ASSERT_TRUE(cache_.Prepare().ok());
  EXPECT_EQ(cache_.BlobPath(kEtag), In("blobs/" + kEtag));
  EXPECT_EQ(cache_.LockPath(kEtag), folder_.File(".locks/models--a--b/" + kEtag + ".lock"));
  EXPECT_EQ(cache_.SnapshotFolder(kCommit), In("snapshots/" + kCommit));
  EXPECT_THAT(Content(folder_.File("CACHEDIR.TAG")),
              HasSubstr("Signature: 8a477f597d28d172789f06886806bc55\n"));
  folder_.Write("models--a--b/blobs/" + kEtag, "text");
  ASSERT_TRUE(cache_.Link(kCommit, "config.json", kEtag).ok());
  ASSERT_TRUE(cache_.Link(kCommit, "1_Pooling/config.json", kEtag).ok());
  const std::filesystem::path snapshot = cache_.SnapshotFolder(kCommit);
  EXPECT_EQ(std::filesystem::read_symlink(snapshot / "config.json"), "../../blobs/" + kEtag);
  EXPECT_EQ(std::filesystem::read_symlink(snapshot / "1_Pooling/config.json"),
            "../../../blobs/" + kEtag);
  EXPECT_EQ(Content(snapshot / "1_Pooling/config.json"), "text");
}

TEST_F(HubCacheTest, ReplacesALink) {
  folder_.Write("models--a--b/blobs/" + kEtag, "text");
  ASSERT_TRUE(cache_.Link(kCommit, "f", std::string(40, '0')).ok());
  EXPECT_FALSE(cache_.HasFile(kCommit, "f", {4, kEtag}));
  ASSERT_TRUE(cache_.Link(kCommit, "f", kEtag).ok());
  EXPECT_TRUE(cache_.HasFile(kCommit, "f", {4, kEtag}));
  EXPECT_FALSE(cache_.HasFile(kCommit, "f", {5, kEtag}));
  EXPECT_TRUE(cache_.HasFile(kCommit, "f", {-1, ""}));
}

TEST_F(HubCacheTest, NotesRevisions) {
  EXPECT_EQ(cache_.ReadRef("main").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(cache_.WriteRef("main", kCommit).ok());
  ASSERT_TRUE(cache_.WriteRef("refs/pr/1", kCommit).ok());
  EXPECT_EQ(Content(In("refs/main")), kCommit);
  EXPECT_EQ(cache_.ReadRef("refs/pr/1").value(), kCommit);
  EXPECT_EQ(cache_.ReadRef(kCommit).value(), kCommit);
  ASSERT_TRUE(cache_.WriteRef(kCommit, kCommit).ok());
  EXPECT_FALSE(std::filesystem::exists(In("refs/" + kCommit)));
  folder_.Write("models--a--b/refs/bad", "../../../../etc");
  EXPECT_EQ(cache_.ReadRef("bad").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(HubCacheTest, WritesThroughNoLinkOfAnotherUser) {
  folder_.Write("victim", "precious");
  std::filesystem::create_directories(In("refs"));
  for (int i = 1; i < 1000; ++i) {
    std::filesystem::create_symlink(
        folder_.File("victim"),
        In("refs/main." + std::to_string(getpid()) + "." + std::to_string(i) + ".tmp"));
  }
  ASSERT_TRUE(cache_.WriteRef("main", kCommit).ok());
  EXPECT_EQ(cache_.ReadRef("main").value(), kCommit);
  EXPECT_EQ(Content(folder_.File("victim")), "precious");
}

TEST_F(HubCacheTest, ListsASnapshot) {
  EXPECT_EQ(cache_.List(kCommit).status().code(), absl::StatusCode::kNotFound);
  folder_.Write("models--a--b/blobs/" + kEtag, "text");
  ASSERT_TRUE(cache_.Link(kCommit, "1_Pooling/config.json", kEtag).ok());
  ASSERT_TRUE(cache_.Link(kCommit, "dangling", std::string(40, '0')).ok());
  EXPECT_THAT(cache_.List(kCommit).value().files, ElementsAre(Key("1_Pooling/config.json")));
  // What the Hub's library has listed tells also what is missing.
  folder_.Write("models--a--b/trees/" + kCommit + ".json",
                R"({"format_version":1,"files":{"x":{"size":1},"y":{"size":2}}})");
  EXPECT_THAT(cache_.List(kCommit).value().files, ElementsAre(Key("x"), Key("y")));
}

TEST_F(HubCacheTest, TellsWhyItCannotBeWritten) {
  EXPECT_EQ(WriteError("x", ENOSPC).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(WriteError("x", EDQUOT).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(WriteError("x", EROFS).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(WriteError("x", ENOSPC).ToString(),
              HasSubstr("cannot write x: No space left on device; free space, or choose "
                        "another directory with --model-cache"));
  folder_.Write("file", "");
  EXPECT_THAT(HubCache(folder_.File("file"), "a/b").Prepare().ToString(),
              HasSubstr("cannot write " + folder_.File("file")));
}

TEST(FileLockTest, KeepsOthersOut) {
  TempFolder folder;
  const std::string path = folder.File("lock");
  const auto is_free = [&] {
    const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
    const bool free = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    close(descriptor);
    return free;
  };
  {
    const absl::StatusOr<FileLock> lock = FileLock::Take(path, [] { ADD_FAILURE(); });
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_TRUE(lock->is_exclusive());
    EXPECT_FALSE(is_free());
  }
  EXPECT_TRUE(is_free());
}

TEST(FileLockTest, WaitsAndTakesTheFileThatIsThere) {
  TempFolder folder;
  const std::string path = folder.File("lock");
  absl::StatusOr<FileLock> first = FileLock::Take(path, [] { ADD_FAILURE(); });
  int waits = 0;
  // The holder before removes the file, as some versions of the Hub's library do.
  const absl::StatusOr<FileLock> second = FileLock::Take(path, [&] {
    ++waits;
    std::filesystem::remove(path);
    first = absl::CancelledError();
  });
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(waits, 1);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(FileLockTest, NeedsAFolder) {
  TempFolder folder;
  EXPECT_THAT(FileLock::Take(folder.File("none/lock"), [] {}).status().ToString(),
              HasSubstr("cannot write"));
}

}  // namespace hub_cache_test
}  // namespace attendant::server
