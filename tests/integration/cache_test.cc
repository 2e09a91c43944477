// Tests of the cache of results of the real server: settings, tokens, metrics, and the client.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace cache_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The SHA-256 of "test" and of "other".
constexpr char kTokens[] =
    "infer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
    "infer d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa\n";

v1::EncodeResponse Encode(const ReadyServer& server, const std::vector<int64_t>& ids,
                          const std::string& token = "") {
  v1::EncodeRequest request;
  request.set_model("m");
  *request.mutable_token_ids() = IntegerTensor({static_cast<int64_t>(ids.size()), 1}, ids);
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  grpc::ClientContext call;
  if (!token.empty()) call.AddMetadata("authorization", "Bearer " + token);
  v1::EncodeResponse response;
  const grpc::Status status = server.NewStub()->Encode(&call, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

TEST(CacheOfTheServerTest, IsSetAsideAndCounted) {
  ReadyServer server({"--model=m=synthetic:tiny", "--cache-bytes=1MiB"});
  const v1::EncodeResponse first = Encode(server, {1, 2});
  const v1::EncodeResponse second = Encode(server, {2, 3, 1});
  EXPECT_EQ(first.execution().cached_sequences(), 0);
  EXPECT_EQ(second.execution().cached_sequences(), 2);
  EXPECT_EQ(second.pooled().data().substr(0, 128), first.pooled().data().substr(128));
  EXPECT_EQ(second.pooled().data().substr(256), first.pooled().data().substr(0, 128));
  server.ExpectMetrics(AllOf(HasSubstr("attendant_cache_hits_total{kind=\"vectors\"} 2\n"),
                             HasSubstr("attendant_cache_misses_total{kind=\"vectors\"} 3\n"),
                             HasSubstr("attendant_cache_entries 3\n"),
                             HasSubstr(absl::StrCat("attendant_cache_bytes ", 3 * (128 + 256)))));
}

TEST(CacheOfTheServerTest, IsOffUnlessItIsAskedFor) {
  ReadyServer server({"--model=m=synthetic:tiny"});
  Encode(server, {1});
  EXPECT_EQ(Encode(server, {1}).execution().cached_sequences(), 0);
  EXPECT_THAT(server.Get("/metrics"), HasSubstr("attendant_cache_bytes 0\n"));
}

TEST(CacheOfTheServerTest, IsApartForEachToken) {
  TempFolder folder;
  folder.Write("tokens", kTokens);
  ReadyServer server({"--model=m=synthetic:tiny", "--cache-bytes=1MiB",
                      absl::StrCat("--token-file=", folder.File("tokens"))});
  EXPECT_EQ(Encode(server, {1, 2}, "test").execution().cached_sequences(), 0);
  EXPECT_EQ(Encode(server, {1, 2}, "other").execution().cached_sequences(), 0);
  EXPECT_EQ(Encode(server, {1, 2}, "test").execution().cached_sequences(), 2);
  EXPECT_EQ(Encode(server, {1, 2}, "other").execution().cached_sequences(), 2);
}

TEST(CacheOfTheServerTest, IsToldByTheClient) {
  ReadyServer server({"--model=m=synthetic:tiny", "--cache-bytes=1MiB"});
  std::vector<std::string> command = {"encode",        "--model=m",          "--token-ids=1,2,3",
                                      "--pooled=mean", "--no-hidden-states", "--address",
                                      server.address()};
  EXPECT_THAT(client::RunWith(command).out, Not(HasSubstr("cache")));
  EXPECT_THAT(client::RunWith(command).out, HasSubstr("\ncached sequences: 1\n"));
  command.push_back("--json");
  EXPECT_THAT(client::RunWith(command).out, HasSubstr("\"cached_sequences\": 1"));
}

}  // namespace cache_test
}  // namespace attendant::server
