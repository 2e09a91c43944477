#include "server/hub/hub_json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace hub_json_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

const std::string kSha1(40, '1'), kSha256(64, '2'), kListed(40, 'c');

std::string Listing(const std::string& siblings) {
  return absl::StrCat(R"({"id":"a/b","sha":")", kListed, R"(","siblings":[)", siblings, "]}");
}

TEST(HubJsonTest, ReadsAList) {
  const absl::StatusOr<HubListing> listing = ParseListing(Listing(absl::StrCat(
      R"({"rfilename":"config.json","size":7,"blobId":")", kSha1,
      R"("},{"rfilename":"x/m.safetensors","size":9,"blobId":")", kSha1, R"(","lfs":{"sha256":")",
      kSha256, R"(","size":9,"pointerSize":130}},)", R"({"rfilename":"only a name"})")));
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_EQ(listing->commit, kListed);
  ASSERT_THAT(listing->files,
              ElementsAre(Key("config.json"), Key("only a name"), Key("x/m.safetensors")));
  EXPECT_EQ(listing->files.at("config.json").size, 7);
  EXPECT_EQ(listing->files.at("config.json").etag, kSha1);
  EXPECT_EQ(listing->files.at("x/m.safetensors").etag, kSha256);
  EXPECT_EQ(listing->files.at("only a name").size, -1);
  EXPECT_EQ(listing->files.at("only a name").etag, "");
}

TEST(HubJsonTest, DigestsThatCouldBePathsAreNone) {
  for (const std::string& digest :
       {std::string("../../x"), std::string("1234"), std::string(40, 'G')}) {
    const absl::StatusOr<HubListing> listing = ParseListing(
        Listing(absl::StrCat(R"({"rfilename":"f","size":-1,"blobId":")", digest, R"("})")));
    ASSERT_TRUE(listing.ok()) << listing.status();
    EXPECT_EQ(listing->files.at("f").etag, "");
    EXPECT_EQ(listing->files.at("f").size, -1);
  }
}

TEST(HubJsonTest, LeavesOutUnsafePaths) {
  for (const std::string path : {"", "/etc/passwd", "../x", "a/../../x", "a/./x", "a//x", "a/",
                                 "..", "a\\\\..\\\\x", "a\\u0000x", "a\\nx", "a\\u007fx"}) {
    const absl::StatusOr<HubListing> listing =
        ParseListing(Listing(absl::StrCat(R"({"rfilename":")", path, R"("})")));
    ASSERT_TRUE(listing.ok()) << listing.status();
    EXPECT_THAT(listing->files, IsEmpty()) << path;
  }
  EXPECT_FALSE(IsSafePath(std::string(256, 'a')));
  EXPECT_FALSE(IsSafePath(std::string(600, 'a') + "/" + std::string(600, 'b')));
  EXPECT_TRUE(IsSafePath("1_Pooling/config.json"));
}

TEST(HubJsonTest, RefusesOtherTexts) {
  for (const std::string text :
       {"", "<html>", "[]", "{}", R"({"sha":"main","siblings":[]})",
        R"({"sha":"../../../../../../../../../../../../../x","siblings":[]})",
        R"({"sha":"cccccccccccccccccccccccccccccccccccccccc"})",
        R"({"sha":"cccccccccccccccccccccccccccccccccccccccc","siblings":{}})"}) {
    EXPECT_EQ(ParseListing(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(HubJsonTest, ReadsATree) {
  const absl::StatusOr<HubListing> tree =
      ParseTree(absl::StrCat(R"({"format_version":1,"files":{"a":{"size":3,"blob_id":")", kSha1,
                             R"("},"b":{"size":4,"blob_id":")", kSha1, R"(","lfs_sha256":")",
                             kSha256, R"(","lfs_size":4},"../c":{"size":1}}})"),
                kListed);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->commit, kListed);
  EXPECT_THAT(tree->files, ElementsAre(Key("a"), Key("b")));
  EXPECT_EQ(tree->files.at("b").etag, kSha256);
  EXPECT_FALSE(ParseTree(R"({"format_version":2,"files":{}})", kListed).ok());
  EXPECT_FALSE(ParseTree(R"({"format_version":1})", kListed).ok());
}

TEST(HubJsonTest, ReadsTheFoldersOfModules) {
  EXPECT_THAT(ParseModuleFolders(R"([{"path":""},{"path":"1_Pooling","type":"x"},{}])").value(),
              ElementsAre("", "1_Pooling", ""));
  for (const std::string text :
       {R"({"path":""})", R"([{"path":".."}])", R"([{"path":"/a"}])", R"([{"path":"a/b"}])"}) {
    EXPECT_EQ(ParseModuleFolders(text).status().code(), absl::StatusCode::kInvalidArgument);
  }
  std::string many = "[{}";
  for (int i = 0; i < 16; ++i) many += ",{}";
  EXPECT_THAT(ParseModuleFolders(many + "]").status().ToString(),
              HasSubstr("a list of at most 16 modules"));
}

TEST(HubJsonTest, ReadsTheFoldersOfARouter) {
  EXPECT_THAT(ParseRouterFolders(R"({"types":{"b":"x","a":"y"},"structure":{}})").value(),
              ElementsAre("a", "b"));
  for (const std::string text : {R"([])", R"({})", R"({"types":[]})", R"({"types":{"..":"x"}})",
                                 R"({"types":{"a/b":"x"}})"}) {
    EXPECT_EQ(ParseRouterFolders(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(HubJsonTest, ReadsTheNamesOfShards) {
  EXPECT_THAT(ParseShards(R"({"weight_map":{"t":"b","u":"a","v":"b"}})").value(),
              ElementsAre("a", "b"));
  for (const std::string text :
       {R"({})", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"t":1}})",
        R"({"weight_map":{"t":"../a"}})", R"({"weight_map":{"t":"a/b"}})"}) {
    EXPECT_EQ(ParseShards(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  std::string many = R"({"weight_map":{"t":"s")";
  for (int i = 0; i < 512; ++i) absl::StrAppend(&many, ",\"", i, "\":\"", i, "\"");
  EXPECT_THAT(ParseShards(many + "}}").status().ToString(), HasSubstr("1 to 512 files"));
}

}  // namespace hub_json_test
}  // namespace attendant::server
