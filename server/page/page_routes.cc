#include "server/page/page_routes.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/page/page_files.h"

namespace attendant::server {
namespace {

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpAnswer AnswerOf(const char* type) {
  HttpAnswer answer;
  answer.content_type = type;
  answer.headers = {{"Content-Security-Policy", kPolicy},
                    {"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"},
                    {"Cache-Control", "no-cache"}};
  return answer;
}

HttpAnswer AnswerWith(const PageFile& file, const HttpRequest& request) {
  HttpAnswer answer = AnswerOf(file.type);
  answer.headers.emplace_back("ETag", file.tag);
  // If-None-Match may list several tags, and a proxy that compresses answers prefixes the tag with
  // W/.
  if (absl::StrContains(request.Header("If-None-Match"), file.tag)) {
    answer.status = 304;
    return answer;
  }
  answer.body = file.text;
  return answer;
}

}  // namespace

HttpRoutes PageRoutes(const PageFacts& facts) {
  HttpAnswer told = AnswerOf("application/json");
  told.body = absl::StrCat("{\"rest\":", facts.rest ? "true" : "false",
                           ",\"tokens\":", facts.tokens ? "true" : "false", "}");
  HttpRoutes routes = {{"/page/facts.json", [told](const HttpRequest&) { return told; }}};
  for (const PageFile& file : kPageFiles) {
    routes[file.path] = [&file](const HttpRequest& request) { return AnswerWith(file, request); };
  }
  return routes;
}

std::string PageUrl(const std::string& address, int port, bool tls) {
  const bool everywhere = address == "0.0.0.0" || address == "::";
  const std::string host = everywhere                        ? "localhost"
                           : absl::StrContains(address, ":") ? absl::StrCat("[", address, "]")
                                                             : address;
  return absl::StrCat(tls ? "https://" : "http://", host, ":", port, "/");
}

}  // namespace attendant::server
