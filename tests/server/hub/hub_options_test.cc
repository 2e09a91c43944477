#include "server/hub/hub_options.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant::server {
namespace hub_options_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Environment = std::map<std::string, std::string>;

absl::StatusOr<HubOptions> TryRead(const Environment& environment, const std::string& cache = "",
                                   bool offline = false) {
  return ReadHubOptions(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? "" : found->second;
      },
      cache, offline);
}

HubOptions Read(const Environment& environment, const std::string& cache = "",
                bool offline = false) {
  const absl::StatusOr<HubOptions> options = TryRead(environment, cache, offline);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.value_or(HubOptions());
}

std::string Error(const Environment& environment) {
  const absl::Status status = TryRead(environment).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(HubOptionsTest, TheDefaultsAreThoseOfTheHubsLibrary) {
  const HubOptions options = Read({{"HOME", "/nowhere"}});
  EXPECT_EQ(options.endpoint, "https://huggingface.co");
  EXPECT_EQ(options.cache, "/nowhere/.cache/huggingface/hub");
  EXPECT_EQ(options.token, "");
  EXPECT_EQ(options.ca_file, "");
  EXPECT_FALSE(options.offline);
}

TEST(HubOptionsTest, TheCacheIsWhereTheFirstOfTheseSays) {
  Environment environment = {{"HOME", "/h"}};
  EXPECT_EQ(Read(environment).cache, "/h/.cache/huggingface/hub");
  environment["XDG_CACHE_HOME"] = "/x";
  EXPECT_EQ(Read(environment).cache, "/x/huggingface/hub");
  environment["HF_HOME"] = "~/hf";
  EXPECT_EQ(Read(environment).cache, "/h/hf/hub");
  environment["HUGGINGFACE_HUB_CACHE"] = "/older";
  EXPECT_EQ(Read(environment).cache, "/older");
  environment["HF_HUB_CACHE"] = "~/newer";
  EXPECT_EQ(Read(environment).cache, "/h/newer");
  EXPECT_EQ(Read(environment, "setting").cache, "setting");
  EXPECT_THAT(Error({}), HasSubstr("--model-cache: expected a directory"));
}

TEST(HubOptionsTest, IsOfflineByTheSettingOrTheVariable) {
  const Environment home = {{"HOME", "/h"}};
  EXPECT_TRUE(Read(home, "", true).offline);
  for (const char* value : {"1", "on", "YES", "True"}) {
    EXPECT_TRUE(Read({{"HOME", "/h"}, {"HF_HUB_OFFLINE", value}}).offline) << value;
  }
  EXPECT_TRUE(Read({{"HOME", "/h"}, {"TRANSFORMERS_OFFLINE", "1"}}).offline);
  EXPECT_FALSE(Read({{"HOME", "/h"}, {"HF_HUB_OFFLINE", "0"}}).offline);
}

TEST(HubOptionsTest, TheEndpointIsAPlainUrl) {
  const auto endpoint = [](const std::string& value) {
    return Read({{"HOME", "/h"}, {"HF_ENDPOINT", value}}).endpoint;
  };
  EXPECT_EQ(endpoint("http://127.0.0.1:8080/"), "http://127.0.0.1:8080");
  EXPECT_EQ(endpoint("https://mirror/api/hub//"), "https://mirror/api/hub");
  for (const char* value : {"huggingface.co", "ftp://h", "https://", "https:///a", "http://h h",
                            "https://user@h", "https://h?a", "https://h#a", "https://h\n"}) {
    EXPECT_THAT(Error({{"HOME", "/h"}, {"HF_ENDPOINT", value}}),
                HasSubstr("HF_ENDPOINT: expected a URL such as https://huggingface.co"));
  }
  EXPECT_EQ(Error({{"HOME", "/h"}, {"HF_ENDPOINT", "https://user:secret@h"}}),
            "HF_ENDPOINT: expected a URL such as https://huggingface.co, without user, query and "
            "fragment; got a user");
}

TEST(HubOptionsTest, TheTokenIsThatOfTheVariableOrOfTheLogin) {
  TempFolder folder;
  folder.Write("token", "hf_file\n");
  folder.Write("other", "hf_other");
  Environment environment = {{"HF_HOME", folder.path()}};
  EXPECT_EQ(Read(environment).token, "hf_file");
  environment["HF_TOKEN_PATH"] = folder.File("other");
  EXPECT_EQ(Read(environment).token, "hf_other");
  environment["HUGGING_FACE_HUB_TOKEN"] = "hf_older";
  EXPECT_EQ(Read(environment).token, "hf_older");
  environment["HF_TOKEN"] = " hf_variable ";
  EXPECT_EQ(Read(environment).token, "hf_variable");
  environment["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1";
  EXPECT_EQ(Read(environment).token, "");
}

TEST(HubOptionsTest, RefusesATokenThatIsNoneAndDoesNotShowIt) {
  EXPECT_THAT(Error({{"HOME", "/h"}, {"HF_TOKEN", "secret\r\nX-Header: 1"}}),
              AllOf(HasSubstr("HF_TOKEN: expected a token: one line"), Not(HasSubstr("secret"))));
  EXPECT_THAT(Error({{"HOME", "/h"}, {"HF_TOKEN_PATH", "/nowhere/token"}}),
              HasSubstr("Hub token: /nowhere/token: no such file"));
}

TEST(HubOptionsTest, TakesOtherAuthorities) {
  EXPECT_EQ(Read({{"HOME", "/h"}, {"SSL_CERT_FILE", "/ca.pem"}}).ca_file, "/ca.pem");
}

}  // namespace hub_options_test
}  // namespace attendant::server
