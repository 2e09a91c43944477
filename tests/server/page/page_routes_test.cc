#include "server/page/page_routes.h"

#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace page_routes_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(PageUrlTest, IsForABrowserOnTheMachine) {
  EXPECT_EQ(PageUrl("0.0.0.0", 8002, false), "http://localhost:8002/");
  EXPECT_EQ(PageUrl("::", 8002, true), "https://localhost:8002/");
  EXPECT_EQ(PageUrl("10.0.0.7", 80, false), "http://10.0.0.7:80/");
  EXPECT_EQ(PageUrl("::1", 8443, true), "https://[::1]:8443/");
}

class PageRoutesTest : public ::testing::Test {
 protected:
  PageRoutesTest() {
    HttpHandlers handlers;
    handlers.metrics = [] { return std::string(); };
    handlers.ready = [] { return true; };
    handlers.routes = PageRoutes({.rest = true, .tokens = false});
    server_ = HttpServer::Start("127.0.0.1", 0, std::move(handlers)).value();
  }

  std::string Call(const std::string& method, const std::string& path,
                   const std::string& headers = "") const {
    return Exchange(server_->port(),
                    absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: x\r\n", headers, "\r\n"));
  }
  std::string Get(const std::string& path, const std::string& headers = "") const {
    return Call("GET", path, headers);
  }

  std::unique_ptr<HttpServer> server_;
};

std::string HeaderIn(const std::string& answer, const std::string& name) {
  const size_t at = answer.find(absl::StrCat("\r\n", name, ": "));
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 4;
  return answer.substr(begin, answer.find("\r\n", begin) - begin);
}

TEST_F(PageRoutesTest, EachFileHasItsType) {
  const std::string page = Get("/");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(HeaderIn(page, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page, HasSubstr("\r\n\r\n<!DOCTYPE html>\n"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  EXPECT_EQ(HeaderIn(Get("/page/page.css"), "Content-Type"), "text/css; charset=utf-8");
  EXPECT_EQ(HeaderIn(Get("/page/drawing.js"), "Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(HeaderIn(Get("/page/icon.svg"), "Content-Type"), "image/svg+xml");
  EXPECT_EQ(HeaderIn(Get("/page/facts.json"), "Content-Type"), "application/json");
}

TEST_F(PageRoutesTest, ForbidsWhatIsNotOfThisPort) {
  for (const auto& [path, handler] : PageRoutes({})) {
    const std::string answer = Get(path);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200")) << path;
    EXPECT_THAT(HeaderIn(answer, "Content-Security-Policy"),
                AllOf(HasSubstr("default-src 'none'"), HasSubstr("frame-ancestors 'none'"),
                      Not(HasSubstr("unsafe")), Not(HasSubstr("*"))))
        << path;
    EXPECT_EQ(HeaderIn(answer, "X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(HeaderIn(answer, "Referrer-Policy"), "no-referrer") << path;
  }
}

// The files that the page names, and that its modules import.
TEST_F(PageRoutesTest, NamesNoFileThatIsNotThere) {
  std::set<std::string> served;
  for (const auto& [path, handler] : PageRoutes({})) served.insert(path);
  for (const std::string& path : served) {
    const std::string answer = Get(path);
    for (const std::string mark : {"\"page/", "from \"./"}) {
      for (size_t at = answer.find(mark); at != std::string::npos; at = answer.find(mark, at + 1)) {
        const size_t begin = at + mark.size();
        const std::string name = answer.substr(begin, answer.find('"', begin) - begin);
        EXPECT_TRUE(served.contains("/page/" + name)) << path << " names " << name;
      }
    }
  }
}

TEST_F(PageRoutesTest, NothingIsInline) {
  const std::string page = Get("/");
  for (const char* inlined : {"<style", " style=", " onclick=", "javascript:", "http:", "https:"}) {
    EXPECT_THAT(page, Not(HasSubstr(inlined)));
  }
  EXPECT_THAT(page, HasSubstr("<script type=\"module\" src=\"page/page.js\"></script>"));
}

TEST_F(PageRoutesTest, AFileThatIsTheSameIsNotSentAgain) {
  const std::string tag = HeaderIn(Get("/page/page.js"), "ETag");
  EXPECT_EQ(tag.size(), 34u);  // a digest in quotes
  EXPECT_NE(tag, HeaderIn(Get("/page/page.css"), "ETag"));
  EXPECT_EQ(HeaderIn(Get("/page/page.js"), "Cache-Control"), "no-cache");
  const std::string same = Get("/page/page.js", absl::StrCat("If-None-Match: ", tag, "\r\n"));
  EXPECT_THAT(same, StartsWith("HTTP/1.1 304"));
  EXPECT_THAT(same, EndsWith("\r\n\r\n"));
  EXPECT_EQ(HeaderIn(same, "ETag"), tag);
  const std::string several = absl::StrCat("If-None-Match: \"x\", W/", tag, "\r\n");
  EXPECT_THAT(Get("/page/page.js", several), StartsWith("HTTP/1.1 304"));
  EXPECT_THAT(Get("/page/page.js", "If-None-Match: \"x\"\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST_F(PageRoutesTest, OtherMethodsPathsAndBodiesAreRefused) {
  const std::string head = Call("HEAD", "/");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
  EXPECT_NE(HeaderIn(head, "Content-Length"), "0");
  const std::string post = Call("POST", "/", "Content-Length: 1\r\n");
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405"));
  EXPECT_EQ(HeaderIn(post, "Allow"), "GET, HEAD");
  EXPECT_THAT(Get("/", "Content-Length: 1\r\n"), StartsWith("HTTP/1.1 413"));
  for (const char* path : {"/page", "/page/", "/page/none.js", "/index.html", "/page/../metrics"}) {
    EXPECT_THAT(Get(path), StartsWith("HTTP/1.1 404")) << path;
  }
}

TEST(PageFactsTest, AreToldWithoutSecrets) {
  const auto told = [](const PageFacts& facts) {
    const HttpRequest request = {"GET", "/page/facts.json"};
    return AnswerFrom(PageRoutes(facts), request).body;
  };
  EXPECT_EQ(told({.rest = true, .tokens = false}), R"({"rest":true,"tokens":false})");
  EXPECT_EQ(told({.rest = false, .tokens = true}), R"({"rest":false,"tokens":true})");
}

}  // namespace page_routes_test
}  // namespace attendant::server
