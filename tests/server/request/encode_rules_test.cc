// Tests of the rules that EncodeRequest has and AttendRequest does not: the code and the message of
// each refusal.
#include <gtest/gtest.h>

#include <string>

#include "tests/server/support/rule_test.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace encode_rules_test {

v1::EncodeRequest ValidIds() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  *request.mutable_token_ids() = IntegerTensor({2, 3}, {1, 2, 3, 4, 5, 6});
  return request;
}

using Request = v1::EncodeRequest;
using EncodeRule = Rule<Request>;
using EncodeRuleTest = RuleTest<Request>;

TEST_P(EncodeRuleTest, Refuses) {
  v1::EncodeResponse response;
  ExpectRefusal(server().Encode(Spoiled(ValidIds()), &response));
}

void Span(Request& request, uint32_t first, uint32_t count) {
  request.mutable_layers()->set_first(first);
  request.mutable_layers()->set_count(count);
}

void Features(Request& request, std::vector<int64_t> shape) {
  request.set_model("patches");
  request.clear_token_ids();
  int64_t count = 1;
  for (const int64_t dimension : shape) count *= dimension;
  *request.mutable_features() = FloatTensor(std::move(shape), SomeValues(count, 1));
}

const EncodeRule kFeatureRules[] = {
    {"FeaturesWithoutAFront",
     [](Request& r) {
       Features(r, {1, 3, 32});
       r.set_model("tiny");
     },
     "features: not supported by model \"tiny\": it has no patch embedding and no prefix tokens; "
     "send hidden_states"},
    {"FeaturesInTheMiddle",
     [](Request& r) {
       Features(r, {1, 3, 32});
       Span(r, 1, 1);
     },
     "layers.first: expected 0 with features; got 1"},
    {"TooFewFeatures",
     [](Request& r) {
       Features(r, {1, 2, 32});
     },
     "features: expected 3 rows in a sequence (the model's positions); got 2 in sequence 0"},
    {"TooManyFeatures",
     [](Request& r) {
       Features(r, {2, 4, 32});
     },
     "features: expected 3 rows in a sequence (the model's positions); got 4 in sequence 0"},
    {"FeaturesThatGrowTooMany",
     [](Request& r) {
       Features(r, {80, 3, 32});
     },
     "features: expected at most 256 tokens (--max-request-tokens), including 3 prefix tokens "
     "before each sequence; got 480"},
};

INSTANTIATE_TEST_SUITE_P(Features, EncodeRuleTest, ::testing::ValuesIn(kFeatureRules),
                         NameOfRule<Request>);

const EncodeRule kPromptRules[] = {
    {"PromptOfNoVector", [](Request& r) { r.add_prompt_tokens(1); },
     "prompt_tokens: requires return_pooled and a pooling other than CLASSIFIER"},
    {"PromptOfAClassifier",
     [](Request& r) {
       r.set_model("counting");
       r.set_return_pooled(true);
       r.set_pooling(v1::CLASSIFIER);
       r.add_prompt_tokens(1);
     },
     "prompt_tokens: requires return_pooled and a pooling other than CLASSIFIER"},
    {"PromptsOfOtherSequences",
     [](Request& r) {
       r.set_return_pooled(true);
       for (int i = 0; i < 3; ++i) r.add_prompt_tokens(1);
     },
     "prompt_tokens: expected 1 or B = 2 numbers; got 3"},
    {"NegativePrompt",
     [](Request& r) {
       r.set_return_pooled(true);
       r.add_prompt_tokens(1);
       r.add_prompt_tokens(-1);
     },
     "prompt_tokens[1]: expected 0 or more; got -1"},
    {"PromptOfFeatures",
     [](Request& r) {
       Features(r, {1, 3, 32});
       r.set_return_pooled(true);
       r.set_pooling(v1::MEAN);
       r.add_prompt_tokens(1);
     },
     "prompt_tokens: cannot be combined with features"},
    {"TaskOfNoTokenVectors", [](Request& r) { r.set_task("query"); },
     "task: requires return_token_vectors or query_vectors"},
};

INSTANTIATE_TEST_SUITE_P(Prompts, EncodeRuleTest, ::testing::ValuesIn(kPromptRules),
                         NameOfRule<Request>);

const EncodeRule kSpanRules[] = {
    {"EmptySpan", [](Request& r) { Span(r, 0, 0); },
     "layers: expected a span of at least 1 layer within 0..1; got first 0, count 0"},
    {"SpanBeyondTheLast", [](Request& r) { Span(r, 1, 2); },
     "layers: expected a span of at least 1 layer within 0..1; got first 1, count 2"},
    {"SpanThatWraps", [](Request& r) { Span(r, 4294967295u, 4294967295u); },
     "layers: expected a span of at least 1 layer within 0..1; got first 4294967295, count "
     "4294967295"},
    {"IdsInTheMiddle", [](Request& r) { Span(r, 1, 1); },
     "layers.first: expected 0 with token_ids; got 1"},
    {"IntermediateOutside",
     [](Request& r) {
       Span(r, 0, 1);
       r.add_intermediate_layers(1);
     },
     "intermediate_layers[0]: expected 0..0; got 1"},
    {"IntermediateTwice",
     [](Request& r) {
       r.add_intermediate_layers(1);
       r.add_intermediate_layers(1);
     },
     "intermediate_layers[1]: expected each layer once; got 1 twice"},
    {"AttentionOutside", [](Request& r) { r.add_attention_layers(2); },
     "attention_layers[0]: expected 0..1; got 2"},
    {"AttentionTwice",
     [](Request& r) {
       r.add_attention_layers(0);
       r.add_attention_layers(0);
     },
     "attention_layers[1]: expected each layer once; got 0 twice"},
    {"NothingToPoolBy",
     [](Request& r) {
       r.set_model("counting");
       r.set_return_pooled(true);
     },
     "pooling: MODEL_POOLING not supported by model \"counting\": its checkpoint does not define "
     "pooling; use another mode such as MEAN"},
    {"NoHead",
     [](Request& r) {
       r.set_return_pooled(true);
       r.set_pooling(v1::CLASSIFIER);
     },
     "pooling: CLASSIFIER not supported by model \"tiny\": it has no classification head; use "
     "another mode such as MEAN"},
    {"NoTokenHead", [](Request& r) { r.set_return_token_vectors(true); },
     "return_token_vectors: not supported by model \"tiny\": it has no token head"},
    {"NoHeadForQueryVectors",
     [](Request& r) {
       *r.mutable_query_vectors() = FloatTensor({1, 2}, {1, 2});
     },
     "query_vectors: not supported by model \"tiny\": it has no token head"},
    {"NoVocabularyHead", [](Request& r) { r.set_return_sparse(true); },
     "return_sparse: not supported by model \"tiny\": it has no MLM head and no lexical head"},
    {"UnknownPooling",
     [](Request& r) {
       r.set_return_pooled(true);
       r.set_pooling(static_cast<v1::Pooling>(99));
     },
     "pooling: expected a Pooling value; got 99"},
    {"LongRequestId", [](Request& r) { r.set_request_id(std::string(257, 'x')); },
     "request_id: expected at most 256 bytes; got 257"},
};
INSTANTIATE_TEST_SUITE_P(Span, EncodeRuleTest, ::testing::ValuesIn(kSpanRules),
                         NameOfRule<Request>);

const EncodeRule kIdRules[] = {
    {"NoInput", [](Request& r) { r.clear_token_ids(); },
     "hidden_states: expected exactly one of hidden_states, token_ids, features and texts; got 0"},
    {"TwoInputs",
     [](Request& r) {
       *r.mutable_hidden_states() = FloatTensor({1, 1, 32}, SomeValues(32, 1));
     },
     "hidden_states: expected exactly one of hidden_states, token_ids, features and texts; got 2"},
    {"NoEmbeddings", [](Request& r) { r.set_model("bare"); },
     "token_ids: not supported by model \"bare\": it has no embeddings; send hidden_states"},
    {"FloatIds",
     [](Request& r) {
       *r.mutable_token_ids() = FloatTensor({1, 1}, {1});
     },
     "token_ids.dtype: expected an integer type; got FLOAT32"},
    {"BoolIds",
     [](Request& r) {
       *r.mutable_token_ids() = IntegerTensor({1, 1}, {1}, v1::BOOL);
     },
     "token_ids.dtype: expected an integer type; got BOOL"},
    {"IdRank",
     [](Request& r) {
       *r.mutable_token_ids() = IntegerTensor({1, 1, 1}, {1});
     },
     "token_ids.shape: expected [B, S], or [T] with lengths; got [1, 1, 1]"},
    {"IdBytes", [](Request& r) { r.mutable_token_ids()->mutable_data()->pop_back(); },
     "token_ids.data: expected 48 bytes for INT64 [2, 3]; got 47 bytes"},
    {"IdBeyondVocabulary",
     [](Request& r) {
       *r.mutable_token_ids() = IntegerTensor({2, 3}, {1, 2, 3, 4, 99, 100});
     },
     "token_ids[1, 2]: expected 0..99; got 100"},
    {"NegativeId",
     [](Request& r) {
       *r.mutable_token_ids() = IntegerTensor({3}, {1, -1, -2}, v1::INT32);
       r.add_lengths(3);
     },
     "token_ids[1]: expected 0..99; got -1"},
    {"HugeUnsignedId",
     [](Request& r) {
       *r.mutable_token_ids() = IntegerTensor({1, 1}, {-1}, v1::UINT64);
     },
     "token_ids[0, 0]: expected 0..99; got 9223372036854775807"},
    {"TypesShape",
     [](Request& r) {
       *r.mutable_token_type_ids() = IntegerTensor({3, 2}, {0, 0, 0, 0, 0, 0});
     },
     "token_type_ids.shape: expected the shape of token_ids, [2, 3]; got [3, 2]"},
    {"TypeBeyondTable",
     [](Request& r) {
       *r.mutable_token_type_ids() = IntegerTensor({2, 3}, {0, 1, 2, 0, 0, 0});
     },
     "token_type_ids[0, 2]: expected 0..1; got 2"},
    {"NoTypeTable",
     [](Request& r) {
       r.set_model("counting");
       *r.mutable_token_type_ids() = IntegerTensor({2, 3}, {0, 0, 0, 0, 0, 0});
     },
     "token_type_ids: not supported by model \"counting\": it has no table for them"},
    {"PositionBeyondTable",
     [](Request& r) {
       *r.mutable_position_ids() = IntegerTensor({2, 3}, {0, 1, 2, 0, 64, 2});
     },
     "position_ids[1, 1]: expected 0..63; got 64"},
    {"TypesWithoutIds",
     [](Request& r) {
       r.clear_token_ids();
       *r.mutable_hidden_states() = FloatTensor({1, 1, 32}, SomeValues(32, 1));
       *r.mutable_token_type_ids() = IntegerTensor({1, 1}, {0});
     },
     "token_type_ids: requires token_ids"},
    {"PositionsWithoutIds",
     [](Request& r) {
       r.clear_token_ids();
       *r.mutable_hidden_states() = FloatTensor({1, 1, 32}, SomeValues(32, 1));
       *r.mutable_position_ids() = IntegerTensor({1, 1}, {0});
     },
     "position_ids: requires token_ids"},
    {"LongRow",
     [](Request& r) {
       *r.mutable_token_ids() = IntegerTensor({1, 65}, std::vector<int64_t>(65, 1));
     },
     "token_ids: expected at most 64 positions in a sequence; got 65 in sequence 0"},
    {"LongCountedRow",
     [](Request& r) {
       r.set_model("counting");
       *r.mutable_token_ids() = IntegerTensor({1, 63}, std::vector<int64_t>(63, 2));
     },
     "token_ids: expected at most 62 positions in a sequence; got 63 in sequence 0"},
    {"UnknownTruncation", [](Request& r) { r.set_truncation(static_cast<v1::Truncation>(9)); },
     "truncation: expected a Truncation value; got 9"},
    {"TruncationOfHiddenStates",
     [](Request& r) {
       r.clear_token_ids();
       *r.mutable_hidden_states() = FloatTensor({1, 1, 32}, SomeValues(32, 1));
       r.set_truncation(v1::TRUNCATE_RIGHT);
     },
     "truncation: requires token_ids or texts"},
    {"TruncationOfGivenPositions",
     [](Request& r) {
       *r.mutable_position_ids() = IntegerTensor({2, 3}, {0, 1, 2, 0, 1, 2});
       r.set_truncation(v1::TRUNCATE_LEFT);
     },
     "truncation: cannot be combined with position_ids"},
};
INSTANTIATE_TEST_SUITE_P(Ids, EncodeRuleTest, ::testing::ValuesIn(kIdRules), NameOfRule<Request>);

TEST(EncodeLimitTest, PaddedIdsMayBeAnything) {
  TestServer server;
  v1::EncodeRequest request = ValidIds();
  *request.mutable_token_ids() = IntegerTensor({2, 3}, {1, 2, -7, 3, 4, 1000000});
  request.add_lengths(2);
  request.add_lengths(2);
  v1::EncodeResponse response;
  const grpc::Status status = server.Encode(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(EncodeLimitTest, RowsOfAnyPlaceFitIfTheirKeptTokensDo) {
  TestServer server;
  v1::EncodeRequest request = ValidIds();
  // 64 kept tokens after 10 padded ones; the last has position 63.
  std::vector<int64_t> mask(74, 1);
  std::fill_n(mask.begin(), 10, 0);
  *request.mutable_token_ids() = IntegerTensor({1, 74}, std::vector<int64_t>(74, 1));
  *request.mutable_attention_mask() = IntegerTensor({1, 74}, mask, v1::INT8);
  v1::EncodeResponse response;
  EXPECT_TRUE(server.Encode(request, &response).ok());
}

const EncodeRule kAttentionRules[] = {
    {"FewGates",
     [](Request& r) {
       for (int i = 0; i < 5; ++i) r.add_head_gates(1);
     },
     "head_gates: expected 4 numbers (one for each head) or 8 (one for each head and layer); got "
     "5"},
    {"GateAboveOne",
     [](Request& r) {
       for (int i = 0; i < 8; ++i) r.add_head_gates(i < 7 ? 1 : 2);
     },
     "head_gates[7]: expected a number from 0 to 1; got 2"},
    {"QueryRowsOfNothing",
     [](Request& r) {
       r.set_omit_hidden_states(true);
       r.set_return_pooled(true);
       r.add_query_rows(0);
     },
     "query_rows: cannot be combined with omit_hidden_states"},
    {"QueryRowBeyondTheLast", [](Request& r) { r.add_query_rows(1000); },
     "query_rows[0]: expected 0..5; got 1000"},
    {"TopOfNothing",
     [](Request& r) {
       r.add_attention_layers(0);
       r.set_attention_form(v1::TOP_KEYS);
     },
     "attention_top_k: expected 1..3; got 0"},
};
INSTANTIATE_TEST_SUITE_P(Attention, EncodeRuleTest, ::testing::ValuesIn(kAttentionRules),
                         NameOfRule<Request>);

}  // namespace encode_rules_test
}  // namespace attendant::server
