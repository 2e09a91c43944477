#include "server/hub/hub_reference.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace hub_reference_test {

using ::testing::HasSubstr;

TEST(HubReferenceTest, ReadsRepositoriesAndRevisions) {
  EXPECT_EQ(ParseHubReference("BAAI/bge-small-en-v1.5").value(),
            (HubReference{"BAAI/bge-small-en-v1.5", "main"}));
  EXPECT_EQ(ParseHubReference("gpt2").value(), (HubReference{"gpt2", "main"}));
  EXPECT_EQ(ParseHubReference("a_b/c@refs/pr/12").value(), (HubReference{"a_b/c", "refs/pr/12"}));
  EXPECT_EQ(ParseHubReference("a/b@v1.0+x").value(), (HubReference{"a/b", "v1.0+x"}));
  EXPECT_EQ(ParseHubSource("hf:a/b@main").value(), (HubReference{"a/b", "main"}));
  EXPECT_EQ(ParseHubSource("a/b").value(), (HubReference{"a/b", "main"}));
}

TEST(HubReferenceTest, RefusesOtherTexts) {
  for (const std::string text :
       {"", "/", "a/", "/b", "a/b/c", "../b", "a/..", "a/.b", "a/b.", "-a/b", "a--b/c", "a..b/c",
        "a/b.git", "a b/c", "a/b\n", "a\\b/c", "https://h/a", "a/b,c"}) {
    const absl::Status status = ParseHubReference(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected ORG/REPO[@REVISION]"));
  }
  EXPECT_FALSE(ParseHubReference("a/" + std::string(97, 'b')).ok());
  for (const std::string revision :
       {"", ".", "..", "a/../b", "/a", "a/", "a//b", ".a", "a b", "a\nb", "a@b", "a?b"}) {
    const absl::Status status = ParseHubReference("a/b@" + revision).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << revision;
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected a branch, a tag"));
  }
}

TEST(HubReferenceTest, IsWrittenAsItIsRead) {
  EXPECT_EQ(ToText({"a/b", "main"}), "hf:a/b");
  EXPECT_EQ(ToText({"a/b", "refs/pr/1"}), "hf:a/b@refs/pr/1");
}

TEST(HubReferenceTest, TellsSourcesApart) {
  EXPECT_TRUE(IsHubSource("hf:a/b"));
  EXPECT_FALSE(IsHubSource("a/b"));
  EXPECT_TRUE(LooksLikeRepository("BAAI/bge-small-en-v1.5"));
  EXPECT_TRUE(LooksLikeRepository("a/b@main"));
  for (const char* path : {"model", "/a/b", "./a", "../a", "~/a", "a/b/c", "a/b.d/"}) {
    EXPECT_FALSE(LooksLikeRepository(path)) << path;
  }
  EXPECT_TRUE(IsCommit(std::string(40, 'a')));
  EXPECT_FALSE(IsCommit(std::string(40, 'A')));
  EXPECT_FALSE(IsCommit(std::string(39, 'a')));
}

}  // namespace hub_reference_test
}  // namespace attendant::server
