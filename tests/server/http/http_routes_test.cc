#include "server/http/http_routes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace http_routes_test {

HttpAnswer Answer(const HttpRequest& request) {
  static const HttpRoutes routes = {{"/a",
                                     [](const HttpRequest&) {
                                       return HttpAnswer{200, "a"};
                                     }},
                                    {"/b", [](const HttpRequest&) {
                                       return HttpAnswer{202, "b"};
                                     }}};
  return AnswerFrom(routes, request);
}

TEST(HttpRoutesTest, ThePathChoosesTheHandler) {
  EXPECT_EQ(Answer({"GET", "/a"}).body, "a");
  EXPECT_EQ(Answer({"GET", "/b"}).status, 202u);
}

TEST(HttpRoutesTest, HeadIsServedByGet) { EXPECT_EQ(Answer({"HEAD", "/a"}).body, "a"); }

TEST(HttpRoutesTest, AnUnknownPathIsNotFound) {
  for (const char* path : {"/", "/a/", "/aa", "/A", ""}) {
    EXPECT_EQ(Answer({"GET", path}).status, 404u) << path;
    EXPECT_EQ(Answer({"POST", path, true}).status, 404u) << path;
  }
}

TEST(HttpRoutesTest, AnotherMethodIsToldThoseOfAPath) {
  const HttpAnswer of_a = Answer({"DELETE", "/a", true});
  EXPECT_EQ(of_a.status, 405u);
  EXPECT_EQ(of_a.allow, "GET, HEAD");
  EXPECT_EQ(of_a.body, "expected the method GET, HEAD\n");
  EXPECT_EQ(Answer({"get", "/a"}).status, 405u);
}

TEST(HttpRoutesTest, ABodyIsRefused) {
  const HttpAnswer answer = Answer({"GET", "/a", true});
  EXPECT_EQ(answer.status, 413u);
  EXPECT_EQ(answer.body, "expected a request without a body\n");
}

}  // namespace http_routes_test
}  // namespace attendant::server
