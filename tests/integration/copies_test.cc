// A test that counts what the real server copies of a request and of its answer.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "tests/integration/copy_counts.h"
#include "tests/integration/server_process.h"
#include "tests/integration/shared_with_server.h"

namespace attendant::server {
namespace copies_test {

// In bfloat16, each element of a request is converted on its way into the batch, and each of an
// answer on its way out of it. That is the one copy of each, and not one that memcpy makes: what
// memcpy makes is a copy too many.
TEST(CopiesTest, NothingCopiesABodyButItsConversion) {
  constexpr int64_t kSequences = 32;
  constexpr int64_t kLength = 256;
  constexpr int64_t kWidth = 32;
  constexpr int64_t kBodyBytes = kSequences * kLength * kWidth * 2;
  constexpr int kCalls = 8;
  SharedWithServer<CopyCounts> counts;
  ReadyServer server({"--model=t=synthetic:tiny"}, counts.Launcher(ATTENDANT_COUNTING_COPIES));
  const auto stub = server.NewStub();
  v1::EncodeRequest request;
  request.set_model("t");
  v1::Tensor& states = *request.mutable_hidden_states();
  states.set_dtype(v1::BFLOAT16);
  for (const int64_t size : {kSequences, kLength, kWidth}) states.add_shape(size);
  states.set_data(std::string(static_cast<size_t>(kBodyBytes), '\x3c'));

  const int64_t before = counts->bytes;
  EXPECT_GT(before, 0) << "the library does not count";
  for (int i = 0; i < kCalls; ++i) {
    grpc::ClientContext context;
    v1::EncodeResponse response;
    const grpc::Status status = stub->Encode(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.hidden_states().data().size(), static_cast<size_t>(kBodyBytes));
  }
  // A copy of either would be kCalls * kBodyBytes; lists of tokens that grow are an eighth of it.
  EXPECT_LT(counts->bytes - before, kCalls * kBodyBytes / 2);
}

}  // namespace copies_test
}  // namespace attendant::server
