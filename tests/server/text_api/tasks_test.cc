// The task of each route's body, with every member.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/server/text_api/form_calls.h"

namespace attendant::server {
namespace tasks_test {

using ::testing::ElementsAre;

std::string ShowInput(const TextInput& input) {
  if (input.ids) return absl::StrCat("[", absl::StrJoin(*input.ids, ","), "]");
  return input.pair ? absl::StrCat(input.text, "+", *input.pair) : input.text;
}

// The parts of a task that are not their defaults.
std::string Show(const TextTask& task) {
  const char* wishes[] = {"vectors", "token vectors", "sparse", "scores", "entities", "tokens"};
  std::vector<std::string> parts = {wishes[static_cast<int>(task.wish)]};
  if (!task.model.empty()) parts.push_back("of " + task.model);
  if (task.query) parts.push_back("query=" + *task.query);
  std::vector<std::string> inputs;
  for (const TextInput& input : task.inputs) inputs.push_back(ShowInput(input));
  parts.push_back(absl::StrCat(task.field, "=", absl::StrJoin(inputs, "|")));
  if (!task.prompt_name.empty()) parts.push_back("prompt=" + task.prompt_name);
  if (!task.preferred_prompts.empty()) {
    parts.push_back("prompts=" + absl::StrJoin(task.preferred_prompts, "|"));
  }
  if (task.truncation) parts.push_back(v1::Truncation_Name(*task.truncation));
  if (task.normalize) parts.push_back("normalize");
  if (task.dimensions) parts.push_back(absl::StrCat("dimensions=", *task.dimensions));
  const char* functions[] = {"", "softmax", "sigmoid", "raw"};
  if (task.scores) parts.push_back(functions[static_cast<int>(*task.scores)]);
  if (task.query && !task.scores) parts.push_back("ranking");
  if (!task.add_special_tokens) parts.push_back("plain");
  return absl::StrJoin(parts, " ");
}

std::string TaskOf(const std::string& path, const std::string& body) {
  const auto task = FormCall(path, body).Read();
  return task.ok() ? Show(*task) : task.status().ToString();
}

TEST(TextTasksTest, OpenAi) {
  for (const char* path : {"/v1/embeddings", "/embeddings"}) {
    EXPECT_EQ(TaskOf(path, R"({"model": "a", "input": "b"})"), "vectors of a input=b normalize");
  }
  const auto of = [](const std::string& members) {
    return TaskOf("/v1/embeddings", absl::StrCat("{", members, "}"));
  };
  EXPECT_EQ(of(R"("input": ["b", "c"], "user": "u", "unknown": [{"x": [1, 2.5]}])"),
            "vectors input=b|c normalize");
  EXPECT_EQ(of(R"("input": [2, 7, 0, 2147483647])"), "vectors input=[2,7,0,2147483647] normalize");
  EXPECT_EQ(of(R"("input": [[2], "b", [3, 4], {"text": "c"}])"),
            "vectors input=[2]|b|[3,4]|c normalize");
  EXPECT_EQ(of(R"("input": "b", "dimensions": 5, "encoding_format": "base64")"),
            "vectors input=b normalize dimensions=5");
  EXPECT_EQ(of(R"("input": "b", "dimensions": 5.0)"), "vectors input=b normalize dimensions=5");
  EXPECT_EQ(of(R"("input": "b", "truncate": false)"), "vectors input=b NO_TRUNCATION normalize");
  EXPECT_EQ(of(R"("input": "b", "truncate": "NONE")"), "vectors input=b NO_TRUNCATION normalize");
  EXPECT_EQ(of(R"("input": "b", "truncate": "START")"), "vectors input=b TRUNCATE_LEFT normalize");
  EXPECT_EQ(of(R"("input": "b", "truncate": "END")"), "vectors input=b TRUNCATE_RIGHT normalize");
  EXPECT_EQ(of(R"("input": "b", "input_type": "passage")"),
            "vectors input=b prompts=passage|document|passage normalize");
  EXPECT_EQ(of(R"("input": "b", "task": "retrieval.query", "normalized": false,
                  "late_chunking": false, "embedding_type": "float")"),
            "vectors input=b prompts=retrieval.query|query");
  EXPECT_EQ(of(R"("input": "b", "task": "nl2code.query", "return_multivector": false)"),
            "vectors input=b prompts=nl2code.query|query normalize");
  EXPECT_EQ(of(R"("input": "b", "task": "code.passage", "normalize": false)"),
            "vectors input=b prompts=code.passage|document|passage");
  EXPECT_EQ(of(R"("input": "b", "prompt_name": "p", "output_dimension": 5, "truncation": false,
                  "output_dtype": "ubinary", "input_type": null)"),
            "vectors input=b prompt=p NO_TRUNCATION normalize dimensions=5");
}

TEST(TextTasksTest, Cohere) {
  EXPECT_EQ(TaskOf("/v2/embed", R"({"model": "a", "texts": ["b", "c"], "truncate": "START",
                                    "input_type": "search_document", "output_dimension": 3,
                                    "embedding_types": ["base64", "float"]})"),
            "vectors of a texts=b|c prompts=search_document|document|passage TRUNCATE_LEFT "
            "normalize dimensions=3");
  for (const char* path : {"/v1/embed", "/v2/embed"}) {
    EXPECT_EQ(TaskOf(path, R"({"texts": ["b"], "input_type": "clustering"})"),
              "vectors texts=b prompts=clustering normalize");
    EXPECT_EQ(TaskOf(path, R"({"inputs": [{"content": [{"type": "text", "text": "b"}]},
                                          {"content": [{"type": "text", "text": "c"}]}]})"),
              "vectors inputs=b|c normalize");
  }
  for (const char* path : {"/v1/rerank", "/v2/rerank"}) {
    EXPECT_EQ(TaskOf(path, R"({"model": "a", "query": "q", "top_n": 1, "return_documents": true,
                               "documents": ["b", {"title": "t", "text": "c"}],
                               "max_tokens_per_doc": 9})"),
              "scores of a query=q documents=b|c ranking");
    EXPECT_EQ(TaskOf(path, R"({"query": "q", "documents": ["b"], "rank_fields": ["text"],
                               "truncation": false})"),
              "scores query=q documents=b NO_TRUNCATION ranking");
    EXPECT_EQ(TaskOf(path, R"({"query": {"text": "q"}, "documents": ["b"]})"),
              "scores query=q documents=b ranking");
  }
}

TEST(TextTasksTest, TextEmbeddingsInference) {
  EXPECT_EQ(TaskOf("/embed", R"({"inputs": "b"})"), "vectors inputs=b normalize");
  EXPECT_EQ(TaskOf("/embed", R"({"inputs": [[2, 3], "b"], "normalize": false, "dimensions": 2,
                                 "prompt_name": "p", "truncate": true,
                                 "truncation_direction": "Left"})"),
            "vectors inputs=[2,3]|b prompt=p TRUNCATE_LEFT dimensions=2");
  EXPECT_EQ(TaskOf("/embed_all", R"({"inputs": ["b"], "truncate": false})"),
            "token vectors inputs=b NO_TRUNCATION");
  EXPECT_EQ(TaskOf("/embed_sparse", R"({"inputs": ["b"], "prompt_name": "p"})"),
            "sparse inputs=b prompt=p");
  EXPECT_EQ(TaskOf("/similarity", R"({"inputs": {"source_sentence": "s", "sentences": ["b", "c"]},
                                      "parameters": {"prompt_name": "p", "truncate": false}})"),
            "vectors inputs.sentences=b|c|s prompt=p NO_TRUNCATION normalize");
  EXPECT_EQ(TaskOf("/rerank", R"({"query": "q", "texts": ["b"], "return_text": true})"),
            "scores query=q texts=b ranking");
  EXPECT_EQ(TaskOf("/rerank", R"({"query": "q", "texts": ["b"], "raw_scores": true})"),
            "scores query=q texts=b raw");
  EXPECT_EQ(TaskOf("/predict", R"({"inputs": "b"})"), "scores inputs=b");
  EXPECT_EQ(TaskOf("/predict", R"({"inputs": ["b", "c"], "raw_scores": true})"),
            "scores inputs=b+c raw");
  EXPECT_EQ(TaskOf("/predict", R"({"inputs": [["b"], ["c", "d"]], "truncate": false})"),
            "scores inputs=b|c+d NO_TRUNCATION");
  EXPECT_EQ(TaskOf("/predict", R"({"inputs": "b", "parameters": {"function_to_apply": "none"}})"),
            "scores inputs=b raw");
  for (const std::string function : {"softmax", "sigmoid"}) {
    EXPECT_EQ(TaskOf("/predict",
                     absl::StrCat(R"({"inputs": "b", "function_to_apply": ")", function, "\"}")),
              "scores inputs=b " + function);
  }
  // Of transformers, whose strategies are not for the server.
  EXPECT_EQ(TaskOf("/predict", R"({"inputs": "b", "parameters": {"truncation": "longest_first"}})"),
            "scores inputs=b");
  EXPECT_EQ(TaskOf("/embed", R"({"inputs": "b", "parameters": {"truncation": false}})"),
            "vectors inputs=b normalize");
  EXPECT_EQ(TaskOf("/v2/embed", R"({"texts": ["b"], "truncation": "only_first"})"),
            "vectors texts=b normalize");
  EXPECT_EQ(TaskOf("/rerank", R"({"query": "q", "documents": ["b", {"text": "c"}]})"),
            "scores query=q documents=b|c ranking");
  EXPECT_EQ(TaskOf("/tokenize", R"({"inputs": ["b", "c"], "add_special_tokens": false,
                                    "prompt_name": "p"})"),
            "tokens inputs=b|c prompt=p NO_TRUNCATION plain");
  EXPECT_EQ(TaskOf("/entities", R"({"inputs": "b", "parameters": {"ignore_labels": []}})"),
            "entities inputs=b");
}

// What Ollama's clients send for loading and generation is ignored.
TEST(TextTasksTest, Ollama) {
  EXPECT_EQ(TaskOf("/api/embed", R"({"model": "a:latest", "input": "b", "keep_alive": "5m",
                                     "options": {"num_ctx": 2, "temperature": null}})"),
            "vectors of a:latest input=b normalize");
  EXPECT_EQ(TaskOf("/api/embed", R"({"input": ["b", ""], "truncate": false, "dimensions": 3})"),
            "vectors input=b| NO_TRUNCATION normalize dimensions=3");
  EXPECT_EQ(TaskOf("/api/embed", R"({"input": "b", "truncate": true, "keep_alive": 0})"),
            "vectors input=b normalize");
  EXPECT_EQ(TaskOf("/api/embeddings", R"({"model": "a", "prompt": "b", "options": {}})"),
            "vectors of a prompt=b");
}

TEST(TextTasksTest, ByModel) {
  const auto of = [](const std::string& body, TextWish main) {
    FormCall call("/", body);
    std::vector<std::string> asked;
    call.request.main_wish = [&](const std::string& model) {
      asked.push_back(model);
      return main;
    };
    const auto task = call.Read();
    return absl::StrCat(absl::StrJoin(asked, ","), ": ", task.ok() ? Show(*task) : "");
  };
  EXPECT_EQ(of(R"({"inputs": "b", "model": "a"})", TextWish::kVectors),
            "a: vectors of a inputs=b normalize");
  EXPECT_EQ(of(R"({"inputs": "b"})", TextWish::kSparse), ": sparse inputs=b");
  EXPECT_EQ(of(R"({"inputs": "b"})", TextWish::kScores), ": scores inputs=b");
  EXPECT_EQ(of(R"({"inputs": "b"})", TextWish::kEntities), ": entities inputs=b");
  EXPECT_EQ(of(R"({"query": "q", "texts": ["b"]})", TextWish::kVectors),
            ": scores query=q texts=b ranking");
  EXPECT_EQ(of(R"({"inputs": {"source_sentence": "s", "sentences": ["b"]}})", TextWish::kVectors),
            ": vectors inputs.sentences=b|s normalize");
}

TEST(TextTasksTest, AModelOfThePathGoesBeforeThatOfTheBody) {
  FormCall call("/v1/embeddings", R"({"input": "b", "model": "other"})");
  call.request.model = "a/b";
  EXPECT_EQ(call.Read()->model, "a/b");
}

TEST(TextTasksTest, ErrorsOfTheModelArePassedOn) {
  FormCall call("/", R"({"inputs": "b"})");
  call.request.main_wish = [](const std::string&) { return absl::NotFoundError("model: gone"); };
  EXPECT_EQ(call.Refused(), R"(404 {"error":"model: gone","error_type":"Validation"})");
}

TEST(TextTasksTest, NullIsAbsentAndTheLastOfANameCounts) {
  EXPECT_EQ(TaskOf("/embed", R"({"inputs": "a", "normalize": null, "inputs": "b", "model": null,
                                 "parameters": null, "truncate": null, "dimensions": null})"),
            "vectors inputs=b normalize");
  EXPECT_EQ(FormCall("/embed", R"({"inputs": "a", "inputs": null})").Read().status().message(),
            "inputs: expected a value; got null");
}

TEST(TextTasksTest, EveryRouteTakesWhetherTextsAreCut) {
  const char kBody[] =
      R"({"query": "q", "documents": ["b"], "texts": ["c"], "inputs": "a", "truncate": false})";
  for (const char* path :
       {"/v1/rerank", "/rerank", "/embed", "/embed_all", "/predict", "/entities"}) {
    EXPECT_EQ(FormCall(path, kBody).Read()->truncation, v1::NO_TRUNCATION) << path;
  }
  EXPECT_EQ(FormCall("/v2/embed", R"({"texts": ["c"], "truncate": "NONE"})").Read()->truncation,
            v1::NO_TRUNCATION);
}

TEST(TextTasksTest, TextsAreTakenAsTheyAre) {
  const auto task =
      FormCall("/embed", "{\"inputs\": [\"\", \" \\u0000\\ud83c\\udf89\\n\", \"Zoë\"]}").Read();
  ASSERT_TRUE(task.ok()) << task.status();
  std::vector<std::string> texts;
  for (const TextInput& input : task->inputs) texts.push_back(input.text);
  EXPECT_THAT(texts, ElementsAre("", std::string(" \0🎉\n", 7), "Zoë"));
}

}  // namespace tasks_test
}  // namespace attendant::server
