#include "server/rpc/call/call_headers.h"

#include <grpcpp/server_context.h>
#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/security/reloaded.h"

namespace attendant::server {
namespace call_headers_test {

TEST(CallHeadersTest, ThePeerIsTheTokenOfTheCallOrItIsRefused) {
  // The SHA-256 of "test".
  const auto tokens = *Reloaded<Tokens>::Load({}, [](const std::vector<std::string>&) {
    return Tokens::Parse("infer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
  });
  const ServerSecrets secrets = {.certificates = nullptr, .tokens = tokens.get()};
  const auto peer_with = [](const std::vector<std::string>& headers, const ServerSecrets& known) {
    grpc::ServerContext call;  // of no connection, so that its address is empty
    grpc::testing::ServerContextTestSpouse spouse(&call);
    for (const std::string& each : headers) spouse.AddClientMetadata("authorization", each);
    return IdentifyPeer(call, {}, known);
  };
  const absl::Status refusal = absl::UnauthenticatedError("the call needs a valid bearer token");
  EXPECT_EQ(*peer_with({"Bearer test"}, secrets), "token 9f86d081884c7d65");
  EXPECT_EQ(peer_with({}, secrets).status(), refusal);
  EXPECT_EQ(peer_with({"Bearer other"}, secrets).status(), refusal);
  EXPECT_EQ(peer_with({"Bearer test", "Bearer test"}, secrets).status(), refusal);
  EXPECT_EQ(*peer_with({"Bearer test"}, {}), "");
}

}  // namespace call_headers_test
}  // namespace attendant::server
