// Pulls from a Hub that refuses, breaks off, or sends something else.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/hub/hub_fixture.h"

namespace attendant::server {
namespace pull_faults_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class PullFaultsTest : public HubTest {
 protected:
  std::string SnapshotFile(const std::string& name) {
    return Content(MustPull().folder + "/" + name);
  }
  // Nothing that could be taken for a model is there.
  void ExpectNoSnapshot() const {
    EXPECT_FALSE(fs::exists(Cached("snapshots")));
    EXPECT_FALSE(fs::exists(Cached("refs")));
  }
};

TEST_F(PullFaultsTest, ARepositoryThatDoesNotExist) {
  EXPECT_THAT(Refusal(absl::StatusCode::kUnauthenticated, {"no/where"}),
              AllOf(StartsWith("hf:no/where: no such repository, or it is private, HTTP 401 "),
                    HasSubstr("set HF_TOKEN")));
  options_.token = "t";
  hub_.Set(R"({"token": "t"})");
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound, {"no/where"}),
              AllOf(HasSubstr("no such repository, or it is private, HTTP 404"),
                    Not(HasSubstr("set HF_TOKEN"))));
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound, {"org/tiny", "v9"}),
              AllOf(StartsWith("hf:org/tiny@v9: no such revision, HTTP 404"), HasSubstr("v9)")));
  EXPECT_THAT(NamesIn(cache_.path()), IsEmpty());
}

TEST_F(PullFaultsTest, APrivateRepositoryNeedsTheToken) {
  hub_.Set(R"({"token": "secret", "private": ["org/tiny"]})");
  EXPECT_THAT(Refusal(absl::StatusCode::kUnauthenticated), HasSubstr("set HF_TOKEN"));
  options_.token = "secret";
  MustPull();
}

TEST_F(PullFaultsTest, ATokenThatIsNotAccepted) {
  options_.token = "old";
  hub_.Fail(R"({"path": "^hub/api", "status": 401, )"
            R"("headers": {"X-Error-Message": "Invalid credentials in Authorization header"}})");
  EXPECT_THAT(Refusal(absl::StatusCode::kUnauthenticated),
              AllOf(HasSubstr("the Hub rejected the token, HTTP 401 (Invalid credentials"),
                    Not(HasSubstr("old"))));
}

TEST_F(PullFaultsTest, AGatedRepositoryNamesThePageWithItsTerms) {
  hub_.Set(R"({"token": "secret", "gated": ["org/tiny"]})");
  EXPECT_THAT(
      Refusal(absl::StatusCode::kPermissionDenied),
      AllOf(HasSubstr("gated, HTTP 401"),
            HasSubstr("accept its terms at " + hub_.endpoint() + "/org/tiny and set HF_TOKEN"),
            Not(HasSubstr("\n"))));
  options_.token = "other";
  EXPECT_THAT(Refusal(absl::StatusCode::kPermissionDenied),
              AllOf(HasSubstr("gated, HTTP 403"), HasSubstr("use a token of that account")));
  ExpectNoSnapshot();
  options_.token = "secret";
  MustPull();
}

TEST_F(PullFaultsTest, TheTokenGoesToTheHubAlone) {
  options_.token = "secret";
  MustPull();
  EXPECT_THAT(hub_.ValuesOf("authorization", "/org/tiny/"),
              AllOf(Not(IsEmpty()), ::testing::Each("Bearer secret")));
  EXPECT_THAT(hub_.ValuesOf("authorization", "?signature=x"), ElementsAre(""));
}

TEST_F(PullFaultsTest, TriesAgainWhatFailsForNow) {
  hub_.Fail(R"({"path": "^hub/api", "times": 1, "status": 503})");
  hub_.Fail(R"({"path": "tokenizer.json", "times": 2, "status": 500})");
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "status": 429})");
  MustPull();
  EXPECT_THAT(notes_,
              ElementsAre(HasSubstr("HTTP 503; trying again"),
                          HasSubstr("tokenizer.json: the Hub is unavailable, HTTP 500"),
                          HasSubstr("tokenizer.json: the Hub is unavailable, HTTP 500"),
                          HasSubstr("model.safetensors: the Hub is unavailable, HTTP 429")));
}

TEST_F(PullFaultsTest, GivesUpWhatFailsForever) {
  hub_.Fail(R"({"path": "^cdn/", "status": 502})");
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable),
              HasSubstr("hf:org/tiny: model.safetensors: the Hub is unavailable, HTTP 502"));
  EXPECT_THAT(hub_.ValuesOf("path", "?signature=x").size(), 5u);
  ExpectNoSnapshot();
}

TEST_F(PullFaultsTest, GoesOnFromWhereTheConnectionBroke) {
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "cut": 100})");
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "cut": 50})");
  EXPECT_EQ(SnapshotFile("model.safetensors"), weights_);
  EXPECT_THAT(hub_.ValuesOf("range", "?signature=x"), ElementsAre("", "bytes=100-", "bytes=150-"));
  EXPECT_EQ(progress_.back().first, progress_.back().second);
}

TEST_F(PullFaultsTest, GoesOnWithWhatAnEarlierPullHasLeft) {
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "cut": 100})");
  hub_.Fail(R"({"path": "^cdn/", "times": 5, "status": 503})");
  Refusal(absl::StatusCode::kUnavailable);
  ExpectNoSnapshot();
  EXPECT_EQ(SnapshotFile("model.safetensors"), weights_);
  EXPECT_EQ(hub_.ValuesOf("range", "?signature=x").back(), "bytes=100-");
}

TEST_F(PullFaultsTest, AServerMaySendTheWholeAgain) {
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "cut": 100})");
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "ignores_range": true})");
  EXPECT_EQ(SnapshotFile("model.safetensors"), weights_);
  EXPECT_EQ(progress_.back().first, progress_.back().second);
}

TEST_F(PullFaultsTest, AnotherRangeThanAskedForIsNotTaken) {
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "cut": 100})");
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "headers": {"Content-Range": "bytes 7-107/200"}})");
  EXPECT_EQ(SnapshotFile("model.safetensors"), weights_);
  EXPECT_THAT(notes_, Contains(HasSubstr("expected bytes from 100 on; got \"bytes 7-107/200\"")));
}

TEST_F(PullFaultsTest, OtherBytesAreNotTaken) {
  hub_.Fail(R"({"path": "^cdn/", "corrupt": true})");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr("model.safetensors: expected the SHA-256 "));
  ExpectNoSnapshot();
  EXPECT_EQ(NamesIn(Cached("blobs")).size(), 1u);  // the tokenizer
}

TEST_F(PullFaultsTest, OtherBytesOfASmallFileAreNotTaken) {
  hub_.Fail(R"({"path": "config.json", "corrupt": true})");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr("config.json: expected the Git SHA-1 "));
  ExpectNoSnapshot();
}

// An earlier download could have been of another server.
TEST_F(PullFaultsTest, BeginsAnewIfWhatWasLeftIsWrong) {
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "corrupt": true, "cut": 100})");
  EXPECT_EQ(SnapshotFile("model.safetensors"), weights_);
  EXPECT_THAT(notes_, Contains(HasSubstr("starting over")));
  EXPECT_EQ(hub_.ValuesOf("range", "?signature=x").back(), "");
  EXPECT_EQ(progress_.back().first, progress_.back().second);
}

TEST_F(PullFaultsTest, FewerOrMoreBytesAreNotTaken) {
  const std::string expected =
      absl::StrCat("expected ", weights_.size(), " bytes (the size in the Hub's list); got ");
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "short": 1})");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr(absl::StrCat(expected, weights_.size() - 1)));
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "extra": 1})");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr(expected + "more"));
  ExpectNoSnapshot();
}

TEST_F(PullFaultsTest, AnAnswerThatIsNoList) {
  hub_.Fail(R"({"path": "^hub/api", "times": 1, "status": 200, "body": "<html>Login</html>"})");
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              HasSubstr("the Hub's list of files: refused JSON"));
  hub_.Fail(R"({"path": "^hub/api", "times": 1, "status": 418})");
  EXPECT_THAT(Refusal(absl::StatusCode::kFailedPrecondition),
              HasSubstr("expected HTTP 200 from the Hub; got 418"));
}

TEST_F(PullFaultsTest, ARepositoryWithoutSafetensors) {
  files_.Write("org/old/config.json", "{}");
  files_.Write("org/old/pytorch_model.bin", "x");
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument, {"org/old"}),
              AllOf(StartsWith("hf:org/old: expected model.safetensors"),
                    HasSubstr("got pytorch_model.bin")));
}

TEST_F(PullFaultsTest, SizesBeyondTheBoundsAreRefusedBeforeAByteComes) {
  const int64_t huge = int64_t{1} << 50;
  hub_.Set(absl::StrCat(R"({"size": {"model.safetensors": )", huge, R"(}})"));
  EXPECT_THAT(Refusal(absl::StatusCode::kResourceExhausted),
              HasSubstr("model.safetensors: expected weight files of at most 65536.0 MiB in "
                        "total (--max-model-bytes); got a file of 1073741824.0 MiB"));
  options_.max_weight_bytes = huge;
  EXPECT_THAT(Refusal(absl::StatusCode::kResourceExhausted),
              AllOf(HasSubstr("needs 1073741824.0 MiB in " + cache_.path() + ", which has "),
                    HasSubstr("left; free space, or choose another directory with --model-cache")));
  hub_.Set(absl::StrCat(R"({"size": {"tokenizer.json": )", (64 << 20) + 1, R"(}})"));
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              HasSubstr("tokenizer.json: expected at most 67108864 bytes; got 67108865"));
  hub_.Set(R"({"size": {"config.json": -5}})");
  EXPECT_EQ(hub_.ValuesOf("path", "?signature=x").size(), 0u);
  MustPull();  // asks for the size of its own
}

// A limit of the process on the size of files stands for a disk that becomes full.
TEST_F(PullFaultsTest, AFullDisk) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = weights_.size() - 1;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string refusal = Refusal(absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(refusal,
              AllOf(HasSubstr("model.safetensors: cannot write "),
                    HasSubstr("; free space, or choose another directory with --model-cache")));
  ExpectNoSnapshot();
  EXPECT_EQ(SnapshotFile("model.safetensors"), weights_);
}

TEST_F(PullFaultsTest, WithoutANetworkTheCacheDoes) {
  options_.connect_timeout = absl::Seconds(5);
  options_.endpoint = "http://127.0.0.1:1";
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable),
              HasSubstr("hf:org/tiny: cannot reach the Hub: http://127.0.0.1:1: "));
  options_.endpoint = "http://no.such.name.invalid";
  EXPECT_THAT(Refusal(absl::StatusCode::kUnavailable), HasSubstr("no.such.name.invalid"));
  options_.endpoint = hub_.endpoint();
  notes_.clear();
  const PulledModel pulled = MustPull();
  options_.endpoint = "http://127.0.0.1:1";
  EXPECT_EQ(MustPull().folder, pulled.folder);
  EXPECT_THAT(notes_,
              Contains(AllOf(HasSubstr("cannot reach the Hub"),
                             HasSubstr("using commit " + pulled.commit + " from the cache"))));
  options_.falls_back_to_cache = false;
  Refusal(absl::StatusCode::kUnavailable);
}

TEST_F(PullFaultsTest, WhereTheHubRefusesTheCacheDoes) {
  const PulledModel pulled = MustPull();
  hub_.Set(R"({"token": "secret", "private": ["org/tiny"]})");
  EXPECT_EQ(MustPull().folder, pulled.folder);
  // What the Hub says does not exist is not looked for.
  hub_.Set(R"({"private": []})");
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound, {"org/tiny", "v1"}).size(), ::testing::Gt(0));
}

TEST_F(PullFaultsTest, AStalledDownloadIsBegunAgain) {
  options_.stall_timeout = absl::Seconds(1);
  hub_.Fail(R"({"path": "^cdn/", "times": 1, "hold": true})");
  EXPECT_EQ(SnapshotFile("model.safetensors"), weights_);
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("the transfer failed"),
                                        HasSubstr("trying again from byte"))));
}

}  // namespace pull_faults_test
}  // namespace attendant::server
