// Refusals of members: statuses and messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/text_api/form_calls.h"

namespace attendant::server {
namespace refusals_test {

struct Refused {
  const char* path;
  const char* body;
  const char* expected;  // the status, the error_type of text-embeddings-inference, the message
};

// Of an answer "422 {…}".
std::string Summary(const std::string& refused) {
  const auto body = nlohmann::json::parse(refused.substr(4), nullptr, false);
  const std::string status = refused.substr(0, 4);
  if (body.contains("error_type")) {
    return absl::StrCat(status, body["error_type"].get<std::string>(), " ",
                        body["error"].get<std::string>());
  }
  if (body.contains("error") && body["error"].is_string()) {  // Ollama
    return status + body["error"].get<std::string>();
  }
  if (body.contains("error")) return status + body["error"]["message"].get<std::string>();
  return body.contains("message") ? status + body["message"].get<std::string>() : refused;
}

class RefusalsTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusalsTest, NameTheMember) {
  const Refused& refused = GetParam();
  FormCall call(refused.path, refused.body);
  call.request.main_wish = [](const std::string&) { return TextWish::kVectors; };
  EXPECT_EQ(Summary(call.Refused()), refused.expected) << refused.path << " " << refused.body;
}

constexpr char kE[] = "/embed", kO[] = "/v1/embeddings", kR[] = "/v1/rerank", kC[] = "/v2/embed",
               kL[] = "/api/embed";

INSTANTIATE_TEST_SUITE_P(
    Ollama, RefusalsTest,
    ::testing::Values(
        Refused{kL, "{}", "400 input: expected a value; got none"},
        Refused{kL, R"({"input": []})", "400 input: expected a list of strings; got an empty list"},
        Refused{kL, R"({"input": ["a", 7]})", "400 input[1]: expected a string; got 7"},
        Refused{kL, R"({"input": [1, 2]})", "400 input[0]: expected a string; got 1"},
        Refused{kL, R"({"input": "a", "truncate": 1})",
                "400 truncate: expected true or false; got 1"},
        Refused{kL, R"({"input": "a", "dimensions": 0})",
                "400 dimensions: expected an integer of at least 1; got 0"},
        Refused{"/api/embeddings", R"({"input": "a"})", "400 prompt: expected a value; got none"},
        Refused{"/api/embeddings", R"({"prompt": ["a"]})",
                "400 prompt: expected a string; got a list of 1"}));

INSTANTIATE_TEST_SUITE_P(
    Inputs, RefusalsTest,
    ::testing::Values(
        Refused{kE, "{}", "422 Validation inputs: expected a value; got none"},
        Refused{kE, R"({"inputs": null})", "422 Validation inputs: expected a value; got null"},
        Refused{
            kE, R"({"inputs": []})",
            "400 Empty inputs: expected a string, a list of strings, or token ids; got an empty "
            "list"},
        Refused{kE, R"({"inputs": 7})",
                "422 Validation inputs: expected a string, a list of strings, or token ids; got 7"},
        Refused{kE, R"({"inputs": ["a", 7]})",
                "422 Validation inputs[1]: expected a string; got 7"},
        Refused{kE, R"({"inputs": ["a", {"x": 1}]})",
                "422 Validation inputs[1].text: expected a string; got null"},
        Refused{kE, R"({"inputs": ["a", []]})",
                "400 Empty inputs[1]: expected at least one token id; got an empty list"},
        Refused{kE, R"({"inputs": [1, true]})",
                "422 Validation inputs[1]: expected a token id, an integer in 0..2147483647; got "
                "true"},
        Refused{kE, R"({"inputs": ["a", [1, "b"]]})",
                "422 Validation inputs[1][1]: expected a token id, an integer in 0..2147483647; "
                "got \"b\""},
        Refused{kO, R"({"input": [1, 1.0]})",
                "400 input[1]: expected a token id, an integer in 0..2147483647; got 1.0"},
        Refused{kO, R"({"input": [-1]})",
                "400 input[0]: expected a token id, an integer in 0..2147483647; got -1"},
        Refused{kO, R"({"input": [1, 2147483648]})",
                "400 input[1]: expected a token id, an integer in 0..2147483647; got 2147483648"},
        Refused{kO, R"({"input": [[1], [18446744073709551615]]})",
                "400 input[1][0]: expected a token id, an integer in 0..2147483647; got "
                "18446744073709551615"},
        Refused{kO, R"({"input": [1, 1000000000000000000000000000000000000000000000]})",
                "400 input[1]: expected a token id, an integer in 0..2147483647; got a number "
                "with many digits"},
        Refused{kO, R"({"input": [1, 1e999]})",
                "400 input[1]: expected a number in the range of float64; got 1e999"},
        Refused{kO, R"({"input": {"text": "a"}})",
                "400 input: expected a string, a list of strings, or token ids; got an object"}));

INSTANTIATE_TEST_SUITE_P(
    Lists, RefusalsTest,
    ::testing::Values(
        Refused{kR, R"({"query": null, "documents": ["a"]})",
                "400 query: expected a value; got null"},
        Refused{kR, R"({"query": 7, "documents": ["a"]})", "400 query: expected a string; got 7"},
        Refused{kR, R"({"query": "q", "documents": []})",
                "400 documents: expected a list of strings, or of objects with \"text\"; got an "
                "empty list"},
        Refused{kR, R"({"query": "q", "documents": "one"})",
                "400 documents: expected a list of strings, or of objects with \"text\"; got "
                "\"one\""},
        Refused{kR, R"({"query": "q", "documents": [5, 6]})",
                "400 documents[0]: expected a string; got 5"},
        Refused{"/v2/rerank", R"({"query": "q", "documents": ["a", {"title": "b"}]})",
                "400 documents[1].text: expected a string; got null"},
        Refused{"/v2/rerank", R"({"query": "q", "documents": ["a", ["b"]]})",
                "400 documents[1]: expected a string; got a list of 1"},
        Refused{kC, R"({"texts": "a"})", "400 texts: expected a list of strings; got \"a\""},
        Refused{kC, R"({"texts": []})", "400 texts: expected a list of strings; got an empty list"},
        Refused{"/predict", R"({"inputs": ["a", "b", "c"]})",
                "422 Validation inputs: expected a list of one or two strings; got a list of 3"},
        Refused{"/predict", R"({"inputs": [["a"], "b"]})",
                "422 Validation inputs[1]: expected a list of one or two strings; got \"b\""},
        Refused{"/predict", R"({"inputs": [["a"], ["b", null]]})",
                "422 Validation inputs[1][1]: expected a string; got null"},
        Refused{"/predict", R"({"inputs": [3]})",
                "422 Validation inputs[0]: expected a string; got 3"},
        Refused{"/predict", R"({"inputs": [3, "a"]})",
                "422 Validation inputs[0]: expected a list of one or two strings; got 3"},
        Refused{"/predict", R"({"inputs": [{"text": "a"}, "b"]})",
                "422 Validation inputs[0]: expected a list of one or two strings; got an object"},
        Refused{"/predict", R"({"inputs": [null]})",
                "422 Validation inputs[0]: expected a list of one or two strings; got null"},
        Refused{"/predict", R"({"inputs": [["a"], [1, 2]]})",
                "422 Validation inputs[1]: expected a list of one or two strings; got a list of 2"},
        Refused{"/rerank", R"({"query": "a", "texts": []})",
                "400 Empty texts: expected a list of strings; got an empty list"},
        Refused{"/rerank", R"({"query": "a"})", "422 Validation texts: expected a value; got none"},
        Refused{"/similarity", R"({"inputs": "a"})",
                "422 Validation inputs: expected an object; got \"a\""},
        Refused{"/similarity", R"({"inputs": {"sentences": ["a"]}})",
                "422 Validation inputs.source_sentence: expected a value; got none"},
        Refused{"/similarity", R"({"inputs": {"source_sentence": "a", "sentences": [{}]}})",
                "422 Validation inputs.sentences[0]: expected a string; got an object"},
        Refused{"/tokenize", R"({"inputs": [1, 2]})",
                "422 Validation inputs[0]: expected a string; got 1"},
        Refused{"/entities", R"({"inputs": [["a"]]})",
                "422 Validation inputs[0]: expected a string; got a list of 1"}));

INSTANTIATE_TEST_SUITE_P(
    Options, RefusalsTest,
    ::testing::Values(
        Refused{kO, R"({"input": "a", "model": 3})", "400 model: expected a string; got 3"},
        Refused{kO, R"({"input": "a", "encoding_format": "hex"})",
                "400 encoding_format: expected \"float\" or \"base64\"; got \"hex\""},
        Refused{kO, R"({"input": "a", "embedding_type": ["float"]})",
                "400 embedding_type: expected \"float\" or \"base64\" or \"binary\" or "
                "\"ubinary\"; got a list of 1"},
        Refused{kO, R"({"input": "a", "output_dtype": "int8"})",
                "400 output_dtype: expected \"float\" or \"base64\" or \"binary\" or "
                "\"ubinary\"; got \"int8\""},
        Refused{kO, R"({"input": "a", "return_multivector": true})",
                "400 return_multivector: expected false; got true"},
        Refused{kO, R"({"input": "a", "late_chunking": true})",
                "400 late_chunking: expected false; got true"},
        Refused{kO, R"({"input": "a", "dimensions": 0})",
                "400 dimensions: expected an integer of at least 1; got 0"},
        Refused{kO, R"({"input": "a", "dimensions": 1.5})",
                "400 dimensions: expected an integer of at least 1; got 1.5"},
        Refused{kO, R"({"input": "a", "truncate": "MIDDLE"})",
                "400 truncate: expected \"none\" or \"start\" or \"end\"; got \"MIDDLE\""},
        Refused{kO, R"({"input": "a", "truncate": 1})",
                "400 truncate: expected true or false; got 1"},
        Refused{kC, R"({"texts": ["a"], "embedding_types": ["float", "int8"]})",
                "400 embedding_types[1]: expected \"float\" or \"base64\" or \"binary\" or "
                "\"ubinary\"; got \"int8\""},
        Refused{kC, R"({"texts": ["a"], "embedding_types": "float"})",
                "400 embedding_types: expected a list of strings; got \"float\""},
        Refused{kC, R"({"texts": ["a"], "embedding_types": [1, 2]})",
                "400 embedding_types: expected a list of strings; got a list of 2"},
        Refused{kC, R"({"texts": ["a"], "images": ["data:"]})",
                "400 images: not supported; only texts are embedded"},
        Refused{kC, R"({"texts": ["a"], "inputs": [{"content": [{"type": "text", "text": "a"}]}]})",
                "400 inputs: cannot be combined with texts"},
        Refused{kC, R"({"inputs": []})",
                "400 inputs: expected a list of objects with \"content\"; got an empty list"},
        Refused{kC, R"({"inputs": ["a"]})",
                "400 inputs[0].content: expected a list of one text; got null"},
        Refused{kC, R"({"inputs": [{"content": [{"type": "text", "text": "a"}, {}]}]})",
                "400 inputs[0].content: expected a list of one text; got a list of 2"},
        Refused{kC, R"({"inputs": [{"content": ["a"]}]})",
                "400 inputs[0].content[0].type: expected \"text\" (only texts are embedded); got "
                "null"},
        Refused{kC, R"({"inputs": [{"content": [{"type": "image_url", "image_url": {}}]}]})",
                "400 inputs[0].content[0].type: expected \"text\" (only texts are embedded); got "
                "\"image_url\""},
        Refused{kC, R"({"inputs": [{"content": [{"type": "text", "text": 5}]}]})",
                "400 inputs[0].content[0].text: expected a string; got 5"},
        Refused{kC, R"({"texts": ["a"], "max_tokens": 5})",
                "400 max_tokens: not supported; texts are truncated at the model's maximum length"},
        Refused{
            kC, R"({"texts": ["a"], "input_type": "image"})",
            "400 input_type: expected \"query\", \"document\" or \"passage\", also after a word "
            "as in \"search_query\" and \"retrieval.passage\", or \"classification\", "
            "\"clustering\", \"separation\" or \"text-matching\"; got \"image\""},
        Refused{kR,
                R"({"query": "q", "documents": [{"text": "a"}], "rank_fields": ["title", "b"]})",
                "400 rank_fields: expected [\"text\"] (join other fields of a document into its "
                "text); got [title, b]"},
        Refused{kR, R"({"query": "q", "documents": ["a"], "top_n": true})",
                "400 top_n: expected an integer of at least 1; got true"},
        Refused{kR, R"({"query": "q", "documents": ["a"], "return_documents": "yes"})",
                "400 return_documents: expected true or false; got \"yes\""},
        Refused{kR, R"({"query": "q", "documents": ["a"], "max_tokens_per_doc": -3})",
                "400 max_tokens_per_doc: expected an integer of at least 1; got -3"},
        Refused{kE, R"({"inputs": "a", "normalize": 1})",
                "422 Validation normalize: expected true or false; got 1"},
        Refused{kE, R"({"inputs": "a", "prompt_name": {}})",
                "422 Validation prompt_name: expected a string; got an object"},
        Refused{kE, R"({"inputs": "a", "truncation_direction": "up"})",
                "422 Validation truncation_direction: expected \"right\" or \"left\"; got "
                "\"up\""},
        Refused{kE, R"({"inputs": "a", "parameters": 5})",
                "422 Validation parameters: expected an object; got 5"},
        Refused{kE, R"({"inputs": "a", "parameters": {"normalize": []}})",
                "422 Validation parameters.normalize: expected true or false; got an empty list"},
        Refused{"/predict", R"({"inputs": "a", "parameters": {"function_to_apply": "relu"}})",
                "422 Validation parameters.function_to_apply: expected \"none\" or \"softmax\" or "
                "\"sigmoid\"; got \"relu\""},
        Refused{"/predict", R"({"inputs": "a", "parameters": {"candidate_labels": ["b"]}})",
                "422 Validation candidate_labels: not supported; send pairs of a text and a "
                "hypothesis, [[text, hypothesis], …]"},
        Refused{"/predict", R"({"inputs": "a", "top_k": 0})",
                "422 Validation top_k: expected an integer of at least 1; got 0"},
        Refused{"/tokenize", R"({"inputs": "a", "add_special_tokens": "no"})",
                "422 Validation add_special_tokens: expected true or false; got \"no\""},
        Refused{"/entities", R"({"inputs": "a", "aggregation_strategy": "first"})",
                "422 Validation aggregation_strategy: expected \"simple\" or \"none\"; got "
                "\"first\""},
        Refused{"/entities", R"({"inputs": "a", "ignore_labels": ["O", 1.5]})",
                "422 Validation ignore_labels[1]: expected a string; got 1.5"},
        Refused{"/", R"({"inputs": "a", "model": false})",
                "422 Validation model: expected a string; got false"},
        Refused{"/", R"({"query": "a", "texts": 1})",
                "422 Validation texts: expected a list of strings; got 1"}));

INSTANTIATE_TEST_SUITE_P(
    Bodies, RefusalsTest,
    ::testing::Values(
        Refused{kO, "", "400 the body: expected a JSON object; got no body"},
        Refused{kO, "{", "400 the body: expected a JSON object; got invalid JSON at byte 2"},
        Refused{kO, "{} {}", "400 the body: expected a JSON object; got invalid JSON at byte 4"},
        Refused{kO, R"({"input": "a", "dimensions": NaN})",
                "400 the body: expected a JSON object; got invalid JSON at byte 30"},
        Refused{kO, "{\"input\": \"a\nb\"}",
                "400 the body: expected a JSON object; got invalid JSON at byte 13"},
        Refused{kO, "[1]", "400 the body: expected a JSON object; got a list of 1"},
        Refused{kO, "null", "400 the body: expected a JSON object; got null"},
        Refused{kO, "\"text\"", "400 the body: expected a JSON object; got \"text\""},
        Refused{
            kE, "{\"inputs\": [\"a\", \"b\xff\"]}",
            "422 Tokenizer inputs[1]: expected a string of Unicode characters; got invalid UTF-8 "
            "at byte 20 of the body"},
        Refused{
            kE, R"({"inputs": "\ud800"})",
            "422 Tokenizer inputs: expected a string of Unicode characters; got half a surrogate "
            "pair at byte 19 of the body"},
        Refused{kE, R"({"inputs": ["a", "b", "c", "\udc00"]})",
                "422 Tokenizer inputs[3]: expected a string of Unicode characters; got half a "
                "surrogate pair at byte 34 of the body"},
        Refused{kR, R"({"query": "a", "documents": [{"text": "b"}, {"text": "\ud800x"}]})",
                "400 documents[1].text: expected a string of Unicode characters; got half a "
                "surrogate pair at byte 61 of the body"},
        Refused{
            kE, "{\"\xff\": 1}",
            "422 Tokenizer the body: expected a string of Unicode characters; got invalid UTF-8 "
            "at byte 3 of the body"}));

TEST(TextLimitsTest, AreNamed) {
  const auto refused = [](const std::string& path, const std::string& body) {
    FormCall call(path, body);
    call.request.limits = {.texts = 3, .text_characters = 5};
    return Summary(call.Refused());
  };
  EXPECT_EQ(refused("/embed", R"({"inputs": ["a", "b", "c", "d"]})"),
            "413 Validation inputs: expected at most 3 elements; got 4");
  EXPECT_EQ(refused("/v1/embeddings", R"({"input": ["a", "b", "c", "d"]})"),
            "400 input: expected at most 3 elements; got 4");
  EXPECT_EQ(refused("/embed", R"({"inputs": ["a", "123456"]})"),
            "413 Validation inputs[1]: expected at most 5 characters; got 6");
  EXPECT_EQ(refused("/embed", R"({"inputs": "ÄÖÜäö"})"), "no error");
  EXPECT_EQ(refused("/embed", R"({"inputs": [1, 2, 3, 4, 5, 6]})"),
            "413 Validation inputs: expected at most 5 token ids; got 6");
  EXPECT_EQ(refused("/embed", R"({"inputs": [[1, 2, 3, 4, 5]]})"), "no error");
  EXPECT_EQ(refused("/rerank", R"({"query": "123456", "texts": ["a"]})"),
            "413 Validation query: expected at most 5 characters; got 6");
  EXPECT_EQ(refused("/predict", R"({"inputs": [["a"], ["a"], ["a"], ["a"]]})"),
            "413 Validation inputs: expected at most 3 elements; got 4");
  EXPECT_EQ(refused("/predict", R"({"inputs": ["a", "a", "a", "a"]})"),
            "413 Validation inputs: expected at most 3 elements; got 4");
}

TEST(TextRefusalsTest, LongValuesAreCutInMessages) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "ä";
  EXPECT_EQ(FormCall("/embed", absl::StrCat("{\"inputs\": \"a\", \"dimensions\": \"", text, "\"}"))
                .Read()
                .status()
                .message(),
            absl::StrCat("dimensions: expected an integer of at least 1; got \"",
                         text.substr(0, 40), "…\""));
}

}  // namespace refusals_test
}  // namespace attendant::server
