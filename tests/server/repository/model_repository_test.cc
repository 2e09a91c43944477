// Tests of what is loaded when, with a loader that does not read the files.
#include "server/repository/model_repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/server/support/test_server.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace model_repository_test {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::Duration kPoll = absl::Seconds(5);
constexpr absl::Duration kKeep = absl::Seconds(7);

class ModelRepositoryTest : public testing::Test {
 protected:
  ModelRepositoryTest() {
    hooks_.load = [this](const std::string& name, const VersionFolder& version) {
      return Load(name, version);
    };
    hooks_.on_load = [this](const std::string& name, bool ok) {
      events_.push_back(absl::StrCat(name, ok ? " loaded" : " refused"));
    };
    hooks_.on_change = [this](const std::string& name, bool served) {
      events_.push_back(absl::StrCat(name, served ? " appears" : " disappears"));
    };
    hooks_.on_retired = [this] { events_.push_back("retired"); };
    hooks_.upkeep = [] {};
  }

  absl::StatusOr<std::shared_ptr<const ServedModel>> Load(const std::string& name,
                                                          const VersionFolder& version) {
    if (std::filesystem::exists(version.path + "/broken")) {
      return absl::InvalidArgumentError(version.path + "/broken: it is there, in " + version.path);
    }
    if (full_) return absl::ResourceExhaustedError("too large now");
    if (std::filesystem::remove(version.path + "/half"))
      Write(absl::StrCat(name, "/", version.version));
    ++loads_;
    auto model = std::make_shared<ServedModel>(name, TestModels().at("tiny")->encoder);
    model->version = version.version;
    return model;
  }

  void Start() {
    settings_.model_repository = folder_.path();
    settings_.repository_poll = kPoll;
    settings_.drain_timeout = kKeep;
    repository_.emplace(settings_, hooks_, table_, clock_);
    ASSERT_TRUE(repository_->LoadAll().ok());
    repository_->Start();
    Await();
  }

  // Waits until the repository has done what is due, and sleeps.
  void Await() {
    absl::Time next = next_poll_;
    if (retirement_ && *retirement_ > clock_.Now()) next = std::min(next, *retirement_);
    clock_.WaitForWaiters(1, next);
  }

  // Lets one poll happen.
  void Poll() {
    clock_.Advance(next_poll_ - clock_.Now());
    next_poll_ = clock_.Now() + kPoll;
    Await();
  }
  // Two polls: the files of a new version have to be the same in both.
  void Settle() {
    Poll();
    Poll();
  }

  void Write(const std::string& version, const char* file = "weights") {
    folder_.Write(version + "/" + file, "x");
  }
  void Remove(const std::string& path) { std::filesystem::remove_all(folder_.File(path)); }

  // 0: not served.
  int64_t Served(const std::string& name) const {
    const auto models = table_.Snapshot();
    const auto found = models->find(name);
    return found == models->end() ? 0 : found->second->version;
  }
  std::vector<std::string> Events() { return std::exchange(events_, {}); }

  TempFolder folder_;
  FakeClock clock_;
  ModelTable table_;
  RepositoryHooks hooks_;
  std::vector<std::string> events_;
  std::atomic<bool> full_ = false;  // there is no memory for any version
  std::atomic<int> loads_ = 0;
  absl::Time next_poll_ = clock_.Now() + kPoll;
  std::optional<absl::Time> retirement_;
  Settings settings_;
  std::optional<ModelRepository> repository_;
};

TEST_F(ModelRepositoryTest, TheFirstPollLoadsTheNewestVersions) {
  for (const char* version : {"a/1", "a/2", "b/7"}) Write(version);
  Start();
  EXPECT_EQ(Served("a"), 2);
  EXPECT_EQ(Served("b"), 7);
  EXPECT_THAT(Events(), ElementsAre("a loaded", "a appears", "b loaded", "b appears"));
}

TEST_F(ModelRepositoryTest, AnEmptyFolderIsFine) {
  Start();
  EXPECT_THAT(*table_.Snapshot(), IsEmpty());
  Write("a/1");
  Settle();
  EXPECT_EQ(Served("a"), 1);
}

TEST_F(ModelRepositoryTest, AFolderThatIsGoneIsAnErrorAtTheStartAndChangesNothingLater) {
  Write("a/1");
  Start();
  std::filesystem::rename(folder_.path(), folder_.path() + ".away");
  Settle();
  EXPECT_EQ(Served("a"), 1);
  ModelTable table;
  ModelRepository other(settings_, hooks_, table, clock_);
  EXPECT_EQ(other.LoadAll().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CheckRepository(folder_.path(), {}).code(), absl::StatusCode::kUnavailable);
  std::filesystem::rename(folder_.path() + ".away", folder_.path());
}

TEST_F(ModelRepositoryTest, ADirectoryNamedLikeAnAliasIsIgnored) {
  table_.SetAliases({{"b", "a"}});
  Write("a/1");
  Start();
  Write("b/1");
  Settle();
  EXPECT_EQ(Served("b"), 0);
  EXPECT_EQ(Served("a"), 1);
  EXPECT_EQ(loads_, 1);
}

TEST_F(ModelRepositoryTest, ANewVersionIsLoadedOnceItsFilesStayAsTheyAre) {
  Write("a/1");
  Start();
  Events();
  Write("a/2");
  Poll();
  EXPECT_EQ(Served("a"), 1);
  Write("a/2", "more");
  Poll();
  EXPECT_EQ(Served("a"), 1);
  Poll();
  EXPECT_EQ(Served("a"), 2);
  EXPECT_THAT(Events(), ElementsAre("a loaded"));
}

TEST_F(ModelRepositoryTest, ABrokenVersionChangesNothingAndIsTriedAgainAfterAChange) {
  Write("a/1");
  Start();
  Events();
  Write("a/2", "broken");
  Settle();
  EXPECT_THAT(Events(), ElementsAre("a refused"));
  Settle();
  EXPECT_EQ(Served("a"), 1);
  EXPECT_THAT(Events(), IsEmpty());
  Write("a/2");
  Settle();
  EXPECT_THAT(Events(), ElementsAre("a refused"));
  Remove("a/2/broken");
  Settle();
  EXPECT_EQ(Served("a"), 2);
}

TEST_F(ModelRepositoryTest, CallersAreToldWhyVersionsAreRefusedWithoutPaths) {
  Write("a/1", "broken");
  Write("a/2");
  Write("a/3", "broken");
  Start();
  EXPECT_EQ(Served("a"), 2);
  EXPECT_THAT(table_.Refused("a"), ElementsAre(RefusedVersion{3, "broken: it is there, in a/3"}));
  Remove("a/3");
  Poll();
  EXPECT_THAT(table_.Refused("a"), IsEmpty());
  Remove("a/2");
  Poll();
  EXPECT_THAT(table_.Refused("a"), ElementsAre(RefusedVersion{1, "broken: it is there, in a/1"}));
  Remove("a");
  Poll();
  EXPECT_THAT(table_.Refused("a"), IsEmpty());
}

TEST_F(ModelRepositoryTest, AVersionWithoutMemoryIsTriedAtEveryPollAndReportedOnce) {
  Write("a/1");
  Start();
  Events();
  full_ = true;
  Write("a/2");
  Settle();
  Settle();
  EXPECT_EQ(Served("a"), 1);
  EXPECT_THAT(Events(), ElementsAre("a refused"));
  full_ = false;
  Poll();
  EXPECT_EQ(Served("a"), 2);
  EXPECT_THAT(Events(), ElementsAre("a loaded"));
}

TEST_F(ModelRepositoryTest, AVersionWhoseFilesChangeWhileTheyAreReadIsNotServed) {
  Write("a/1");
  Write("a/1", "half");
  Start();
  EXPECT_EQ(Served("a"), 0);
  EXPECT_THAT(Events(), ElementsAre("a refused"));
  Settle();
  EXPECT_EQ(Served("a"), 1);
  EXPECT_EQ(loads_, 2);
}

TEST_F(ModelRepositoryTest, NothingChangesOnceItIsStopped) {
  Write("a/1");
  Start();
  Events();
  repository_->Stop();
  Remove("a");
  Write("b/1");
  clock_.Advance(2 * kPoll);
  repository_.reset();
  EXPECT_EQ(Served("a"), 1);
  EXPECT_EQ(Served("b"), 0);
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(ModelRepositoryTest, ABrokenNewestVersionLeavesTheOneBefore) {
  Write("a/1");
  Write("a/2", "broken");
  Start();
  EXPECT_EQ(Served("a"), 1);
}

TEST_F(ModelRepositoryTest, TheNewestVersionLeftTakesOver) {
  for (const char* version : {"a/1", "a/2", "a/3"}) Write(version);
  Write("a/2", "broken");
  Start();
  EXPECT_EQ(Served("a"), 3);
  Events();
  Remove("a/3");
  Poll();
  EXPECT_EQ(Served("a"), 1);
  EXPECT_THAT(Events(), ElementsAre("a refused", "a loaded"));
}

TEST_F(ModelRepositoryTest, ARemovedVersionServesUntilANewOneHasSettled) {
  Write("a/1");
  Start();
  Remove("a/1");
  Write("a/2");
  Poll();
  EXPECT_EQ(Served("a"), 1);
  Poll();
  EXPECT_EQ(Served("a"), 2);
}

TEST_F(ModelRepositoryTest, AModelWithoutVersionsDisappears) {
  Write("a/1");
  Write("b/1");
  Start();
  Events();
  Remove("a");
  Remove("b/1");
  Poll();
  EXPECT_THAT(*table_.Snapshot(), IsEmpty());
  EXPECT_THAT(Events(), ElementsAre("a disappears", "b disappears"));
  Write("a/1");
  Settle();
  EXPECT_THAT(Events(), testing::Contains("a appears"));
}

TEST_F(ModelRepositoryTest, AReplacedVersionIsRetiredAfterAWhile) {
  Write("a/1");
  Start();
  Events();
  std::shared_ptr<const ServedModel> old = table_.Snapshot()->at("a");
  Write("a/2");
  Poll();
  retirement_ = next_poll_ + kKeep;
  Poll();
  EXPECT_EQ(Served("a"), 2);
  EXPECT_THAT(Events(), ElementsAre("a loaded"));
  Poll();
  EXPECT_FALSE(old->retired->load());
  EXPECT_GT(old.use_count(), 1);
  clock_.Advance(*retirement_ - clock_.Now());
  clock_.WaitForWaiters(1, next_poll_);
  EXPECT_TRUE(old->retired->load());
  EXPECT_EQ(old.use_count(), 1);
  EXPECT_THAT(Events(), ElementsAre("retired"));
}

TEST_F(ModelRepositoryTest, AReplacedVersionThatNobodyUsesGoesAtTheNextPoll) {
  Write("a/1");
  Start();
  const std::weak_ptr<const ServedModel> old = table_.Snapshot()->at("a");
  Write("a/2");
  Settle();
  EXPECT_EQ(Served("a"), 2);
  EXPECT_FALSE(old.expired());
  Poll();
  EXPECT_TRUE(old.expired());
}

TEST_F(ModelRepositoryTest, AVersionWhoseRetirementFailsIsRetiredTheNextTime) {
  int calls = 0;
  hooks_.on_retired = [this, &calls] {
    if (++calls == 1) throw std::bad_alloc();
    events_.push_back("retired");
  };
  Write("a/1");
  Start();
  const std::weak_ptr<const ServedModel> old = table_.Snapshot()->at("a");
  Write("a/2");
  Settle();
  retirement_ = clock_.Now() + kKeep;
  Events();
  Poll();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(old.expired());
  clock_.Advance(*retirement_ - clock_.Now());
  Await();
  EXPECT_THAT(Events(), ElementsAre("retired"));
  EXPECT_TRUE(old.expired());
}

TEST_F(ModelRepositoryTest, AReplacedVersionIsKeptForSequencesThatDoNotHoldIt) {
  Write("a/1");
  Start();
  const std::weak_ptr<const ServedModel> old = table_.Snapshot()->at("a");
  const std::shared_ptr<const std::atomic<bool>> sequence = old.lock()->retired;
  Write("a/2");
  Settle();
  retirement_ = clock_.Now() + kKeep;
  Poll();
  EXPECT_FALSE(old.expired());
  EXPECT_FALSE(sequence->load());
  clock_.Advance(*retirement_ - clock_.Now());
  Await();
  EXPECT_TRUE(old.expired());
  EXPECT_TRUE(sequence->load());
}

TEST_F(ModelRepositoryTest, NamesOfOtherModelsAreTaken) {
  table_.Replace({{"a", TestModels().at("tiny")}});
  Write("b/1");
  Start();
  EXPECT_EQ(Served("b"), 1);
  Write("a/1");
  Settle();
  EXPECT_EQ(table_.Snapshot()->at("a"), TestModels().at("tiny"));
  ModelSetting setting;
  setting.name = "c";
  EXPECT_TRUE(CheckRepository(folder_.path(), {setting}).ok());
  setting.name = "a";
  const absl::Status status = CheckRepository(folder_.path(), {setting});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), absl::StrCat("--model a and --model-repository ", folder_.File("a"),
                                           ": expected two different names"));
}

}  // namespace model_repository_test
}  // namespace attendant::server
