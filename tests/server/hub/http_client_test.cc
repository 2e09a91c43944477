#include "server/hub/http_client.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/hub/hub_fixture.h"
#include "tests/support/test_certificates.h"

namespace attendant::server {
namespace http_client_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct TextSink {
  HttpSink sink() {
    return {[this](int64_t offset) {
              begun.push_back(offset);
              text.clear();
              return absl::OkStatus();
            },
            [this](absl::string_view bytes) {
              text.append(bytes.data(), bytes.size());
              return status;
            }};
  }

  std::vector<int64_t> begun;
  std::string text;
  absl::Status status;
};

class HttpClientTest : public HubTest {
 protected:
  using HubTest::HubTest;

  absl::StatusOr<HttpResponse> Get(const std::string& path, int64_t from = 0) {
    HttpClient client(options_);
    return client.Get(options_.endpoint + path, from, absl::Seconds(30), sink_.sink());
  }

  TextSink sink_;
};

TEST_F(HttpClientTest, GetsABody) {
  hub_.Fail(R"({"path": "/x", "status": 200, "body": "hello", "headers": {"X-Name": " a "}})");
  const absl::StatusOr<HttpResponse> response = Get("/x");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->header("x-name"), "a");
  EXPECT_EQ(response->header("x-other"), "");
  EXPECT_EQ(sink_.text, "hello");
  EXPECT_THAT(sink_.begun, ElementsAre(0));
}

TEST_F(HttpClientTest, BeginsAnEmptyBody) {
  hub_.Fail(R"({"path": "/x", "status": 200})");
  ASSERT_TRUE(Get("/x").ok());
  EXPECT_THAT(sink_.begun, ElementsAre(0));
}

TEST_F(HttpClientTest, TheBodyOfAnErrorIsDropped) {
  hub_.Fail(R"({"path": "/x", "status": 404, "body": "sorry"})");
  EXPECT_EQ(Get("/x").value().status, 404);
  EXPECT_THAT(sink_.begun, IsEmpty());
  EXPECT_EQ(sink_.text, "");
}

TEST_F(HttpClientTest, AnErrorOfTheSinkEndsTheTransfer) {
  hub_.Fail(R"({"path": "/x", "status": 200, "body": "hello"})");
  sink_.status = absl::ResourceExhaustedError("full");
  EXPECT_EQ(Get("/x").status(), sink_.status);
}

TEST_F(HttpClientTest, FollowsRedirectsWithTheTokenWhereItBelongs) {
  options_.token = "secret";
  hub_.Fail(R"({"path": "^hub/a", "status": 307, "headers": {"Location": "/b?x=1"}})");
  hub_.Fail(absl::StrCat(R"({"path": "^hub/b", "status": 301, "headers": {"Location": ")",
                         hub_.cdn() + "/c", R"("}})"));
  hub_.Fail(absl::StrCat(R"({"path": "^cdn/c", "status": 302, "headers": {"Location": ")",
                         hub_.endpoint() + "/d", R"("}})"));
  hub_.Fail(R"({"path": "^hub/d", "status": 200, "body": "there"})");
  const absl::StatusOr<HttpResponse> response = Get("/a");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->url, hub_.endpoint() + "/d");
  EXPECT_EQ(sink_.text, "there");
  EXPECT_THAT(hub_.ValuesOf("authorization", "/"),
              ElementsAre("Bearer secret", "Bearer secret", "", "Bearer secret"));
}

TEST_F(HttpClientTest, EndsACircleOfRedirects) {
  hub_.Fail(R"({"path": "/x", "status": 302, "headers": {"Location": "/x"}})");
  EXPECT_THAT(Get("/x").status().ToString(), HasSubstr("expected at most 10 redirects; got more"));
  EXPECT_EQ(hub_.Requests().size(), 11u);
}

TEST_F(HttpClientTest, FollowsNoRedirectToFiles) {
  files_.Write("secret", "from the disk");
  hub_.Fail(absl::StrCat(R"({"path": "/x", "status": 302, "headers": {"Location": ")",
                         "file://" + files_.File("secret"), R"("}})"));
  EXPECT_EQ(Get("/x").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(sink_.text, "");
}

TEST_F(HttpClientTest, BoundsTheHeaders) {
  hub_.Fail(absl::StrCat(R"({"path": "/x", "status": 200, "headers": {"A": ")",
                         std::string(40'000, 'a'), R"(", "B": ")", std::string(40'000, 'b'),
                         R"("}})"));
  EXPECT_THAT(Get("/x").status().ToString(), HasSubstr("at most 65536 bytes of headers"));
}

TEST_F(HttpClientTest, HeadLeavesRedirectsElsewhereToItsCaller) {
  hub_.Fail(R"({"path": "/x", "status": 302, "headers": {"Location": "/y"}})");
  hub_.Fail(absl::StrCat(R"({"path": "/y", "status": 302, "headers": {"Location": ")", hub_.cdn(),
                         R"(", "X-Linked-Size": "7"}})"));
  HttpClient client(options_);
  const absl::StatusOr<HttpResponse> response =
      client.Head(options_.endpoint + "/x", absl::Seconds(30));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(response->header("x-linked-size"), "7");
  EXPECT_THAT(hub_.Requests(), ElementsAre("hub HEAD /x", "hub HEAD /y"));
}

TEST_F(HttpClientTest, SaysWhoItIs) {
  options_.user_agent = "attendant/7";
  ASSERT_TRUE(Get("/x").ok());
  EXPECT_THAT(hub_.ValuesOf("agent", "/x"), ElementsAre("attendant/7"));
}

// A Hub whose certificate is of an authority that nobody else knows.
struct Certificates {
  Certificates() {
    const test_support::TestCa ca;
    const test_support::IssuedCertificate issued = ca.Issue();
    folder.Write("ca", ca.certificate());
    folder.Write("certificate", issued.certificate);
    folder.Write("key", issued.key);
  }
  TempFolder folder;
};

class HttpsTest : public Certificates, public HttpClientTest {
 protected:
  HttpsTest() : HttpClientTest(folder.File("certificate"), folder.File("key")) {}
};

TEST_F(HttpsTest, RefusesAnAuthorityThatIsNotKnown) {
  EXPECT_THAT(options_.endpoint, HasSubstr("https://"));
  EXPECT_EQ(Get("/x").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal(absl::StatusCode::kFailedPrecondition),
              AllOf(HasSubstr("hf:org/tiny: the certificate cannot be verified: https://127.0.0.1"),
                    HasSubstr("set SSL_CERT_FILE to trust other authorities")));
  EXPECT_THAT(hub_.Requests(), IsEmpty());
}

TEST_F(HttpsTest, PullsWithTheAuthorityThatIsNamed) {
  options_.ca_file = folder.File("ca");
  const PulledModel pulled = MustPull();
  EXPECT_EQ(Content(pulled.folder + "/model.safetensors"), weights_);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(HttpsTest, ReturnsToHttpForNobody) {
  options_.ca_file = folder.File("ca");
  hub_.Fail(R"({"path": "/x", "status": 302, "headers": {"Location": "http://127.0.0.1:1/"}})");
  EXPECT_THAT(
      Get("/x").status().ToString(),
      AllOf(HasSubstr("expected a redirect to https; got a redirect to http://127.0.0.1:1")));
}

}  // namespace http_client_test
}  // namespace attendant::server
