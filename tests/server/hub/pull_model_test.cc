#include "server/hub/pull_model.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/hub/hub_fixture.h"

namespace attendant::server {
namespace pull_model_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using PullModelTest = HubTest;

TEST_F(PullModelTest, BringsAModelIntoTheCache) {
  const PulledModel pulled = MustPull();
  EXPECT_EQ(pulled.folder, Cached("snapshots/" + pulled.commit));
  EXPECT_THAT(NamesIn(pulled.folder),
              UnorderedElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  EXPECT_EQ(Content(pulled.folder + "/model.safetensors"), weights_);
  EXPECT_EQ(Content(Cached("refs/main")), pulled.commit);
  EXPECT_EQ(NamesIn(Cached("blobs")).size(), 3u);
  EXPECT_THAT(NamesIn(Cached("blobs")), Each(Not(HasSubstr("incomplete"))));
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(progress_.back().first, progress_.back().second);
  EXPECT_GT(progress_.back().second, static_cast<int64_t>(weights_.size()));
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(pulled.folder, {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.layers, 2);
}

TEST_F(PullModelTest, AsksForNothingTwice) {
  const PulledModel pulled = MustPull();
  EXPECT_THAT(hub_.Requests(), Not(Contains(HasSubstr("README"))));
  const size_t before = hub_.Requests().size();
  EXPECT_EQ(MustPull().folder, pulled.folder);
  EXPECT_EQ(hub_.Requests().size(), before + 1);  // the list
  fs::remove_all(Cached("snapshots"));
  EXPECT_EQ(MustPull().folder, pulled.folder);
  EXPECT_EQ(hub_.Requests().size(), before + 2);
}

TEST_F(PullModelTest, PullsOnlyWhatIsNewInANewCommit) {
  const PulledModel old = MustPull();
  files_.Write("org/tiny/tokenizer.json", R"({"added_tokens": [], "version": "2"})");
  const size_t before = hub_.ValuesOf("path", "").size();
  const PulledModel pulled = MustPull();
  EXPECT_NE(pulled.commit, old.commit);
  EXPECT_EQ(hub_.Requests().size(), before + 2);
  EXPECT_EQ(Content(Cached("refs/main")), pulled.commit);
  // The old one can be asked for by its commit.
  EXPECT_EQ(MustPull({"org/tiny", old.commit}).folder, old.folder);
}

TEST_F(PullModelTest, PullsByBranchesWithSlashes) {
  hub_.Set(R"({"revisions": ["refs/pr/7"]})");
  const PulledModel pulled = MustPull({"org/tiny", "refs/pr/7"});
  EXPECT_EQ(Content(Cached("refs/refs/pr/7")), pulled.commit);
  EXPECT_THAT(hub_.Requests()[0], HasSubstr("/revision/refs%2Fpr%2F7?blobs=true"));
}

TEST_F(PullModelTest, AsksForTheDigestsThatAMirrorDoesNotList) {
  hub_.Set(R"({"lists_digests": false})");
  const PulledModel pulled = MustPull();
  EXPECT_EQ(Content(pulled.folder + "/model.safetensors"), weights_);
  EXPECT_THAT(hub_.Requests(), Contains(HasSubstr("hub HEAD /org/tiny/resolve/")).Times(3));
  hub_.Fail(R"({"path": "config.json", "status": 200})");
  fs::remove_all(Cached(""));
  EXPECT_THAT(Refusal(absl::StatusCode::kFailedPrecondition),
              HasSubstr("check that HF_ENDPOINT names a Hub"));
}

TEST_F(PullModelTest, TakesWhatTheHubsLibraryHasLeft) {
  const PulledModel pulled = MustPull();
  // Files in place of links, where links cannot be made.
  const std::string config = pulled.folder + "/config.json";
  const std::string text = Content(config);
  fs::remove(config);
  std::ofstream(config) << text;
  // A blob may be a link too, to a store that repositories share.
  const std::string blob = fs::canonical(pulled.folder + "/model.safetensors");
  fs::rename(blob, cache_.File("shared"));
  fs::create_symlink("../../shared", blob);
  const size_t before = hub_.Requests().size();
  EXPECT_EQ(MustPull().folder, pulled.folder);
  EXPECT_EQ(hub_.Requests().size(), before + 1);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(config)));
}

TEST_F(PullModelTest, OfflineTakesTheCacheAndAsksNobody) {
  const PulledModel pulled = MustPull();
  const size_t before = hub_.Requests().size();
  options_.offline = true;
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound, {"no/where"}), HasSubstr("hf:no/where: "));
  EXPECT_EQ(MustPull().folder, pulled.folder);
  EXPECT_EQ(MustPull({"org/tiny", pulled.commit}).folder, pulled.folder);
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound, {"org/tiny", "v1"}),
              AllOf(HasSubstr("hf:org/tiny@v1: not complete in the cache " + cache_.path()),
                    HasSubstr("pull it once without --offline and HF_HUB_OFFLINE")));
  EXPECT_EQ(hub_.Requests().size(), before);
}

TEST_F(PullModelTest, OfflineRefusesASnapshotWithHoles) {
  const PulledModel pulled = MustPull();
  options_.offline = true;
  fs::remove(pulled.folder + "/model.safetensors");
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound), HasSubstr("not complete in the cache"));
  options_.offline = false;
  MustPull();
  options_.offline = true;
  // The list of the Hub's library knows of files whose absence nothing else shows.
  fs::remove(pulled.folder + "/tokenizer.json");
  EXPECT_TRUE(Pull().ok());
  fs::create_directories(Cached("trees"));
  std::ofstream(Cached("trees/" + pulled.commit + ".json"))
      << R"({"format_version":1,"files":{"config.json":{"size":)" << TinyBertConfig().size()
      << R"(},"model.safetensors":{"size":)" << weights_.size()
      << R"(},"tokenizer.json":{"size":20}}})";
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound), HasSubstr("(no tokenizer.json)"));
}

// As long as it lives, this process may not write to a folder.
class ReadOnly {
 public:
  explicit ReadOnly(std::string folder) : folder_(std::move(folder)) {
    Allow(fs::perms(0555));
    // Root may write everywhere.
    if (user_ == 0) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~ReadOnly() {
    EXPECT_EQ(seteuid(user_), 0);
    Allow(fs::perms(0755));
  }

 private:
  void Allow(fs::perms permissions) const {
    fs::permissions(folder_, permissions);
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_directory()) fs::permissions(entry, permissions);
    }
  }

  const std::string folder_;
  const uid_t user_ = geteuid();
};

TEST_F(PullModelTest, ReadsACacheThatCannotBeWritten) {
  const PulledModel pulled = MustPull();
  const ReadOnly read_only(cache_.path());
  EXPECT_EQ(MustPull().folder, pulled.folder);
  EXPECT_THAT(notes_, IsEmpty());
  hub_.Set(R"({"revisions": ["v1"]})");
  EXPECT_EQ(MustPull({"org/tiny", "v1"}).folder, pulled.folder);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("cannot record the revision: cannot write ")));
}

TEST_F(PullModelTest, TakesAnOlderCommitWhereANewOneCannotBeWritten) {
  const PulledModel pulled = MustPull();
  files_.Write("org/tiny/tokenizer.json", "{}");
  const ReadOnly read_only(cache_.path());
  EXPECT_EQ(MustPull().folder, pulled.folder);
  EXPECT_THAT(notes_,
              ElementsAre(AllOf(HasSubstr("Permission denied"),
                                HasSubstr("using commit " + pulled.commit + " from the cache"))));
  options_.falls_back_to_cache = false;
  EXPECT_THAT(Refusal(absl::StatusCode::kPermissionDenied),
              AllOf(HasSubstr("hf:org/tiny: "), HasSubstr("--model-cache")));
}

TEST_F(PullModelTest, TwoAtOnceGetEachFileOnce) {
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "hold": true})");
  std::promise<void> waiting;
  const auto pull = [&] {
    const PullReport report = {[&waiting](const std::string& line) {
                                 EXPECT_THAT(line, HasSubstr("waiting for another process"));
                                 if (line.starts_with("model.safetensors")) waiting.set_value();
                               },
                               [](int64_t, int64_t) {}};
    return PullModel({"org/tiny"}, options_, report);
  };
  auto first = std::async(std::launch::async, pull);
  while (hub_.ValuesOf("path", "?signature=x").empty()) std::this_thread::yield();
  auto second = std::async(std::launch::async, pull);
  waiting.get_future().wait();
  hub_.Release();
  const absl::StatusOr<PulledModel> one = first.get(), other = second.get();
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(one->folder, other->folder);
  EXPECT_THAT(hub_.Requests(), Contains(HasSubstr("cdn GET")).Times(1));
}

}  // namespace pull_model_test
}  // namespace attendant::server
