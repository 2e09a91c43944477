#include "server/account/trace_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace trace_context_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParent[] = "00f067aa0ba902b7";
const std::string kGood = absl::StrCat("00-", kTrace, "-", kParent, "-01");

TEST(TraceContextTest, TakesWhatIsOfVersion00) {
  EXPECT_EQ(ParseTraceParent(kGood), kGood);
  const std::string not_sampled = absl::StrCat("00-", kTrace, "-", kParent, "-00");
  EXPECT_EQ(ParseTraceParent(not_sampled), not_sampled);
}

TEST(TraceContextTest, TakesTheKnownFieldsOfNewerVersions) {
  EXPECT_EQ(ParseTraceParent(absl::StrCat("01-", kTrace, "-", kParent, "-01")), kGood);
  EXPECT_EQ(ParseTraceParent(absl::StrCat("fe-", kTrace, "-", kParent, "-01-more-x")), kGood);
}

TEST(TraceContextTest, IgnoresWhatIsMalformed) {
  const std::string zeros(32, '0');
  for (const std::string& text : std::vector<std::string>{
           "", "00", "00-", kGood.substr(0, kGood.size() - 1), kGood + "-", kGood + "0",
           kGood + "-more", absl::StrCat("ff-", kTrace, "-", kParent, "-01"),
           absl::StrCat("01-", kTrace, "-", kParent, "-01x"),
           absl::StrCat("0g-", kTrace, "-", kParent, "-01"),
           absl::StrCat("00-", zeros, "-", kParent, "-01"),
           absl::StrCat("00-", kTrace, "-", zeros.substr(0, 16), "-01"),
           absl::StrCat("00-", "4BF92F3577B34DA6A3CE929D0E0E4736", "-", kParent, "-01"),
           absl::StrCat("00_", kTrace, "-", kParent, "-01"),
           absl::StrCat("00-", kTrace, kParent, "--01"), absl::StrCat(" ", kGood)}) {
    EXPECT_EQ(ParseTraceParent(text), "") << text;
  }
}

class TracedCallTest : public ::testing::Test {
 protected:
  // Returns the trailers named traceparent of a call with these headers of that name.
  std::vector<std::string> Trailers(const std::vector<std::string>& headers,
                                    const v1::AttendRequest& request, grpc::StatusCode code) {
    grpc::ClientContext context;
    for (const std::string& header : headers) context.AddMetadata(kTraceParent, header);
    v1::AttendResponse response;
    EXPECT_EQ(server_.stub().Attend(&context, request, &response).error_code(), code);
    std::vector<std::string> trailers;
    const auto [begin, end] = context.GetServerTrailingMetadata().equal_range(kTraceParent);
    for (auto trailer = begin; trailer != end; ++trailer) {
      trailers.emplace_back(trailer->second.data(), trailer->second.size());
    }
    return trailers;
  }

  static v1::AttendRequest Request() {
    return AttendOf("tiny", FloatTensor({1, 2, 32}, SomeValues(64, 1)));
  }

  TestServer server_;
};

TEST_F(TracedCallTest, AnAnswerAndAnErrorHaveTheTrace) {
  EXPECT_THAT(Trailers({kGood}, Request(), grpc::StatusCode::OK), ElementsAre(kGood));
  EXPECT_THAT(Trailers({kGood}, {}, grpc::StatusCode::INVALID_ARGUMENT), ElementsAre(kGood));
}

TEST_F(TracedCallTest, ARefusalHasTheTrace) {
  server_.admission().Close();
  EXPECT_THAT(Trailers({kGood}, Request(), grpc::StatusCode::UNAVAILABLE), ElementsAre(kGood));
}

TEST_F(TracedCallTest, AMalformedOrRepeatedOneIsIgnored) {
  EXPECT_THAT(Trailers({"00-x"}, Request(), grpc::StatusCode::OK), IsEmpty());
  EXPECT_THAT(Trailers({kGood, kGood}, Request(), grpc::StatusCode::OK), IsEmpty());
  EXPECT_THAT(Trailers({}, Request(), grpc::StatusCode::OK), IsEmpty());
}

}  // namespace trace_context_test
}  // namespace attendant::server
