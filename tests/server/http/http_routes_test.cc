#include "server/http/http_routes.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace http_routes_test {

std::vector<HttpRoute> Routes() {
  return {{"GET", "/a",
           [](const HttpRequest&) {
             return HttpAnswer{200, "read"};
           }},
          {"POST", "/a",
           [](const HttpRequest&) {
             return HttpAnswer{201, "written"};
           }},
          {"PUT", "/b", [](const HttpRequest&) {
             return HttpAnswer{202, "put"};
           }}};
}

HttpAnswer Answer(const HttpRequest& request) { return AnswerFrom(Routes(), request); }

TEST(HttpRoutesTest, MethodAndPathChooseTheHandler) {
  EXPECT_EQ(Answer({"GET", "/a"}).body, "read");
  EXPECT_EQ(Answer({"POST", "/a"}).body, "written");
  EXPECT_EQ(Answer({"PUT", "/b"}).status, 202u);
}

TEST(HttpRoutesTest, HeadIsServedByGet) { EXPECT_EQ(Answer({"HEAD", "/a"}).body, "read"); }

TEST(HttpRoutesTest, AnUnknownPathIsNotFound) {
  for (const char* path : {"/", "/a/", "/aa", "/A", ""}) {
    EXPECT_EQ(Answer({"GET", path}).status, 404u) << path;
    EXPECT_EQ(Answer({"POST", path, true}).status, 404u) << path;
  }
}

TEST(HttpRoutesTest, AnotherMethodIsToldThoseOfThePath) {
  const HttpAnswer of_a = Answer({"DELETE", "/a", true});
  EXPECT_EQ(of_a.status, 405u);
  EXPECT_EQ(of_a.allow, "GET, HEAD, POST");
  EXPECT_EQ(of_a.body, "expected the method GET, HEAD, POST\n");
  EXPECT_EQ(Answer({"HEAD", "/b"}).allow, "PUT");
  EXPECT_EQ(Answer({"get", "/a"}).status, 405u);
}

TEST(HttpRoutesTest, ABodyIsRefused) {
  const HttpAnswer answer = Answer({"GET", "/a", true});
  EXPECT_EQ(answer.status, 413u);
  EXPECT_EQ(answer.body, "expected a request without a body\n");
}

}  // namespace http_routes_test
}  // namespace attendant::server
