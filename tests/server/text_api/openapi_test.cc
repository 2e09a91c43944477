// openapi.json beside the table of routes and the forms themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/text_api/form_calls.h"

namespace attendant::server {
namespace openapi_test {

using Json = nlohmann::json;
using ::testing::UnorderedElementsAre;

Json Document() {
  const HttpAnswer answer = OpenApiAnswer();
  EXPECT_EQ(answer.content_type, "application/json");
  return Json::parse(answer.body);
}

const Json& Resolve(const Json& document, const Json& value) {
  if (!value.contains("$ref")) return value;
  return document.at(Json::json_pointer(value["$ref"].get<std::string>().substr(1)));
}

void CollectReferences(const Json& value, std::set<std::string>& found) {
  if (value.is_object() && value.contains("$ref")) found.insert(value["$ref"].get<std::string>());
  for (const Json& inside : value) {
    if (inside.is_structured()) CollectReferences(inside, found);
  }
}

TEST(OpenApiTest, HasTheRoutes) {
  const Json document = Document();
  std::set<std::string> posts, gets;
  for (const auto& [path, item] : document["paths"].items()) {
    const Json& resolved = Resolve(document, item);
    if (resolved.contains("post")) posts.insert(path);
    if (resolved.contains("get")) gets.insert(path);
    for (const Json& method : resolved) {
      EXPECT_TRUE(method["responses"].contains("default")) << path;
    }
  }
  std::set<std::string> routes;
  for (const TextRoute& route : TextRoutes()) {
    EXPECT_TRUE(routes.insert(route.path).second) << route.path;
  }
  EXPECT_EQ(posts, routes);
  EXPECT_THAT(gets, UnorderedElementsAre("/v1/models", "/models", "/v1/models/{model}", "/info",
                                         "/health", "/ping", "/api/tags", "/api/version"));
}

TEST(OpenApiTest, HasWhatItRefersToAndNothingElse) {
  const Json document = Document();
  std::set<std::string> references, parts;
  CollectReferences(document, references);
  for (const std::string& reference : references) {
    EXPECT_TRUE(document.contains(Json::json_pointer(reference.substr(1)))) << reference;
  }
  for (const char* kind : {"schemas", "responses"}) {
    for (const auto& [name, part] : document["components"][kind].items()) {
      parts.insert(absl::StrCat("#/components/", kind, "/", name));
    }
  }
  for (const char* path : {"~1v1~1embeddings", "~1v1~1models", "~1", "~1health"}) {
    references.erase(absl::StrCat("#/paths/", path));
  }
  EXPECT_EQ(references, parts);
}

TEST(OpenApiTest, ItsExamplesAreRead) {
  const Json document = Document();
  for (const TextRoute& route : TextRoutes()) {
    const Json& post = Resolve(document, document["paths"][route.path])["post"];
    FormCall call(route.path, post["requestBody"]["content"]["application/json"]["example"].dump());
    call.request.main_wish = [](const std::string&) { return TextWish::kVectors; };
    EXPECT_EQ(call.Refused(), "no error") << route.path;
    const char* styles[] = {"OpenAiError", "TeiError", "CohereError", "JinaError", "OllamaError"};
    EXPECT_EQ(post["responses"]["default"]["$ref"],
              absl::StrCat("#/components/responses/", styles[static_cast<int>(route.errors)]));
  }
}

// A value of a schema's type that a form must refuse, or null if there is none.
Json Wrong(const Json& schema) {
  if (schema.contains("type") && schema["type"] == "boolean") return "yes";
  if (schema.contains("type") && schema["type"] == "integer") return "1";
  if (schema.contains("enum") || schema.contains("const")) return "nothing of this name";
  return Json::object({{"x", Json::array({Json::object()})}});
}

// Members that the document describes are those that the forms read: each refuses a wrong value.
TEST(OpenApiTest, ItsMembersAreRead) {
  const Json document = Document();
  size_t members = 0;
  for (const TextRoute& route : TextRoutes()) {
    const std::string path = route.path;
    if (route.read == nullptr) continue;  // a route of others
    const Json& content = Resolve(
        document, document["paths"][path])["post"]["requestBody"]["content"]["application/json"];
    const Json& any = Resolve(document, content["schema"]);
    // The example is of the first, and others are those of other routes.
    const Json& schema = any.contains("properties") ? any : Resolve(document, any["oneOf"][0]);
    for (const auto& [name, member] : schema["properties"].items()) {
      if (name == "user" || name == "parameters") continue;
      Json body = content["example"];
      body[name] = Wrong(Resolve(document, member));
      EXPECT_NE(FormCall(path, body.dump()).Refused(), "no error") << path << " " << body;
      ++members;
    }
  }
  EXPECT_GT(members, 50u);
}

// The pattern of purposes describes those that the forms take.
TEST(OpenApiTest, ItsPatternIsThatOfTheForms) {
  const std::regex pattern(
      Document()["components"]["schemas"]["Purpose"]["pattern"].get<std::string>());
  for (const char* purpose :
       {"query", "search_query", "nl2code.query", "document", "search_document", "passage",
        "code.passage", "classification", "clustering", "separation", "text-matching", "code",
        "subquery", "image", "query.code", "my.classification"}) {
    const std::string body = absl::StrCat(R"({"input": "a", "task": ")", purpose, "\"}");
    EXPECT_EQ(std::regex_search(purpose, pattern),
              FormCall("/v1/embeddings", body).Refused() == "no error")
        << purpose;
  }
}

// A text without entities has an empty list, which both forms of the response allow.
TEST(OpenApiTest, EntitiesMayBeNone) {
  const Json document = Document();
  const Json& done = document["paths"]["/entities"]["post"]["responses"]["200"];
  EXPECT_EQ(done["content"]["application/json"]["schema"]["anyOf"].size(), 2u);
}

// What /rerank takes and returns with documents is what /v1/rerank does.
TEST(OpenApiTest, RerankHasBothForms) {
  const Json document = Document();
  const auto content = [](const Json& holder) -> const Json& {
    return holder["content"]["application/json"]["schema"];
  };
  const Json& both = document["paths"]["/rerank"]["post"];
  const Json& documents = document["paths"]["/v1/rerank"]["post"];
  EXPECT_EQ(content(both["requestBody"])["oneOf"][1], content(documents["requestBody"]));
  EXPECT_EQ(content(both["responses"]["200"])["oneOf"][1], content(documents["responses"]["200"]));
}

}  // namespace openapi_test
}  // namespace attendant::server
