// Tests of every rule for the fields of AttendRequest: the code and the message of each refusal.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/server/support/rule_test.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace attend_rules_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

v1::AttendRequest Valid() { return AttendOf("tiny", FloatTensor({2, 3, 32}, SomeValues(192, 1))); }

using Request = v1::AttendRequest;
using AttendRule = Rule<Request>;
using AttendRuleTest = RuleTest<Request>;

TEST_P(AttendRuleTest, Refuses) {
  v1::AttendResponse response;
  ExpectRefusal(server().Attend(Spoiled(Valid()), &response));
}

const AttendRule kModelRules[] = {
    {"NoSuchModel", [](Request& r) { r.set_model("tin\n\"y"); },
     "model: not found (no model is named \"tin\\n\\\"y\"); the models are \"tiny\", \"linear\", "
     "\"mixed\", \"bare\", \"counting\", \"patches\"",
     grpc::StatusCode::NOT_FOUND},
    {"LongModelName", [](Request& r) { r.set_model(std::string(200, 'x')); },
     "model: not found (no model is named \"" + std::string(128, 'x') +
         "…\"); the models are \"mixed\", \"bare\", \"counting\", \"linear\", \"patches\", "
         "\"tiny\"",
     grpc::StatusCode::NOT_FOUND},
    {"NoModelNamed", [](Request& r) { r.clear_model(); },
     "model: expected a name (the server has 6 models); got none"},
    {"LayerBeyondTheLast", [](Request& r) { r.set_layer(2); }, "layer: expected 0..1; got 2"},
    {"UnknownStage", [](Request& r) { r.set_stage(static_cast<v1::AttendStage>(9)); },
     "stage: expected CONTEXT, PROJECTED or BLOCK; got 9"},
    {"NoOutputProjection",
     [](Request& r) {
       r.set_model("bare");
       r.set_stage(v1::PROJECTED);
     },
     "stage: PROJECTED not supported by model \"bare\": it has no output projection; use CONTEXT "
     "or BLOCK"},
    {"ProbabilitiesOfLinearAttention",
     [](Request& r) {
       r.set_model("linear");
       r.set_return_attention_probabilities(true);
     },
     "return_attention_probabilities: not supported by model \"linear\": linear attention does not "
     "score pairs of tokens"},
    {"BiasOfLinearAttention",
     [](Request& r) {
       r.set_model("linear");
       *r.mutable_attention_bias() = FloatTensor({1, 1, 1, 3}, {0, 0, 0});
     },
     "attention_bias: not supported by model \"linear\": linear attention does not score pairs of "
     "tokens"},
    {"LongerThanTheMixing", [](Request& r) { r.set_model("mixed"); },
     "attention_mask: expected sequences of at most 2 positions (the attention's trained length); "
     "got 3 in sequence 0"},
    {"LongRequestId", [](Request& r) { r.set_request_id(std::string(257, 'x')); },
     "request_id: expected at most 256 bytes; got 257"},
    {"IntegerAnswer", [](Request& r) { r.set_output_dtype(v1::INT8); },
     "output_dtype: expected FLOAT32, FLOAT16 or BFLOAT16; got INT8"},
    {"UnknownAnswerType", [](Request& r) { r.set_output_dtype(static_cast<v1::DataType>(77)); },
     "output_dtype: expected FLOAT32, FLOAT16 or BFLOAT16; got the unknown type 77"},
};
INSTANTIATE_TEST_SUITE_P(Model, AttendRuleTest, ::testing::ValuesIn(kModelRules),
                         NameOfRule<Request>);

const AttendRule kHiddenStatesRules[] = {
    {"None", [](Request& r) { r.clear_hidden_states(); },
     "hidden_states: expected a tensor; got none"},
    {"NoDtype", [](Request& r) { r.mutable_hidden_states()->clear_dtype(); },
     "hidden_states.dtype: expected FLOAT32, FLOAT16 or BFLOAT16; got DATA_TYPE_UNSPECIFIED"},
    {"IntegerDtype", [](Request& r) { r.mutable_hidden_states()->set_dtype(v1::INT32); },
     "hidden_states.dtype: expected FLOAT32, FLOAT16 or BFLOAT16; got INT32"},
    {"Scalar", [](Request& r) { r.mutable_hidden_states()->clear_shape(); },
     "hidden_states.shape: expected [B, S, 32], or [T, 32] with lengths; got []"},
    {"WrongWidth", [](Request& r) { r.mutable_hidden_states()->set_shape(2, 31); },
     "hidden_states.shape: expected [B, S, 32], or [T, 32] with lengths; got [2, 3, 31]"},
    {"ManyDimensions",
     [](Request& r) {
       for (int i = 0; i < 997; ++i) r.mutable_hidden_states()->add_shape(1);
     },
     "hidden_states.shape: expected [B, S, 32], or [T, 32] with lengths; got 1000 dimensions "
     "beginning [2, 3, 32, 1, 1, 1, 1, 1]"},
    {"NoSequence", [](Request& r) { r.mutable_hidden_states()->set_shape(0, 0); },
     "hidden_states.shape: expected dimensions of at least 1; got [0, 3, 32]"},
    {"NegativeLength", [](Request& r) { r.mutable_hidden_states()->set_shape(1, -3); },
     "hidden_states.shape: expected dimensions of at least 1; got [2, -3, 32]"},
    {"Overflow",
     [](Request& r) {
       r.mutable_hidden_states()->set_shape(0, int64_t{1} << 32);
       r.mutable_hidden_states()->set_shape(1, int64_t{1} << 32);
     },
     "hidden_states.shape: expected a size that fits into 64 bits; got [4294967296, 4294967296, "
     "32]"},
    {"OverflowInBytesOnly",
     [](Request& r) { r.mutable_hidden_states()->set_shape(0, int64_t{1} << 55); },
     "hidden_states.shape: expected a size that fits into 64 bits; got [36028797018963968, 3, 32]"},
    {"MissingBytes", [](Request& r) { r.mutable_hidden_states()->mutable_data()->pop_back(); },
     "hidden_states.data: expected 768 bytes for FLOAT32 [2, 3, 32]; got 767 bytes"},
    {"NoBytes", [](Request& r) { r.mutable_hidden_states()->clear_data(); },
     "hidden_states.data: expected 768 bytes for FLOAT32 [2, 3, 32]; got 0 bytes"},
    {"TooManyTokens",
     [](Request& r) {
       *r.mutable_hidden_states() = FloatTensor({1, 257, 32}, SomeValues(257 * 32, 1));
     },
     "hidden_states.shape: expected at most 256 tokens (--max-request-tokens); got [1, 257]"},
    {"PackedWithoutLengths",
     [](Request& r) {
       *r.mutable_hidden_states() = FloatTensor({6, 32}, SomeValues(192, 1));
     },
     "lengths: expected 1..256 numbers with packed hidden_states; got 0"},
};
INSTANTIATE_TEST_SUITE_P(HiddenStates, AttendRuleTest, ::testing::ValuesIn(kHiddenStatesRules),
                         NameOfRule<Request>);

const AttendRule kMaskRules[] = {
    {"FloatMask",
     [](Request& r) {
       *r.mutable_attention_mask() = FloatTensor({2, 3}, SomeValues(6, 1));
     },
     "attention_mask.dtype: expected BOOL or an integer type; got FLOAT32"},
    {"MaskShape",
     [](Request& r) {
       *r.mutable_attention_mask() = IntegerTensor({3, 2}, {1, 1, 1, 1, 1, 1});
     },
     "attention_mask.shape: expected [B, S] = [2, 3]; got [3, 2]"},
    {"MaskBytes",
     [](Request& r) {
       *r.mutable_attention_mask() = IntegerTensor({2, 3}, {1, 1, 1, 1, 1});
     },
     "attention_mask.data: expected 48 bytes for INT64 [2, 3]; got 40 bytes"},
    {"MaskAndLengths",
     [](Request& r) {
       *r.mutable_attention_mask() = IntegerTensor({2, 3}, {1, 1, 1, 1, 1, 1});
       r.add_lengths(3);
       r.add_lengths(3);
     },
     "attention_mask: cannot be combined with lengths; send one of them"},
    {"LengthsCount", [](Request& r) { r.add_lengths(3); },
     "lengths: expected B = 2 numbers; got 1"},
    {"LengthBeyondS",
     [](Request& r) {
       r.add_lengths(3);
       r.add_lengths(4);
     },
     "lengths[1]: expected 0..3; got 4"},
    {"BiasRank",
     [](Request& r) {
       *r.mutable_attention_bias() = FloatTensor({3, 3}, SomeValues(9, 1));
     },
     "attention_bias.shape: expected [B, H, S, S] = [2, 4, 3, 3], or 1 in any dimension; got [3, "
     "3]"},
    {"BiasDimension",
     [](Request& r) {
       *r.mutable_attention_bias() = FloatTensor({1, 2, 3, 3}, SomeValues(18, 1));
     },
     "attention_bias.shape: expected [B, H, S, S] = [2, 4, 3, 3], or 1 in any dimension; got [1, "
     "2, 3, 3]"},
    {"BiasDtype",
     [](Request& r) {
       *r.mutable_attention_bias() = IntegerTensor({1, 1, 1, 3}, {0, 1, 0});
     },
     "attention_bias.dtype: expected FLOAT32, FLOAT16 or BFLOAT16; got INT64"},
    {"BiasNan",
     [](Request& r) {
       *r.mutable_attention_bias() = FloatTensor({1, 1, 1, 3}, {0, -kInfinity, std::nanf("")});
     },
     "attention_bias[0, 0, 0, 2]: expected a finite number or minus infinity; got NaN"},
    {"BiasInfinity",
     [](Request& r) {
       *r.mutable_attention_bias() = FloatTensor({2, 1, 1, 3}, {0, 0, 0, 0, kInfinity, 0});
     },
     "attention_bias[1, 0, 0, 1]: expected a finite number or minus infinity; got plus infinity"},
};
INSTANTIATE_TEST_SUITE_P(Mask, AttendRuleTest, ::testing::ValuesIn(kMaskRules),
                         NameOfRule<Request>);

void SetMemory(Request& r, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  *r.mutable_memory()->mutable_hidden_states() = FloatTensor(shape, SomeValues(count, 2));
}

const AttendRule kMemoryRules[] = {
    {"NoRowsOfMemory", [](Request& r) { r.mutable_memory(); },
     "memory.hidden_states: expected a tensor; got none"},
    {"MemoryWidth",
     [](Request& r) {
       SetMemory(r, {2, 4, 16});
     },
     "memory.hidden_states.shape: expected [B, S, 32], or [T, 32] with lengths; got [2, 4, 16]"},
    {"MemoryDtype",
     [](Request& r) {
       *r.mutable_memory()->mutable_hidden_states() = IntegerTensor({1, 1, 32}, {});
     },
     "memory.hidden_states.dtype: expected FLOAT32, FLOAT16 or BFLOAT16; got INT64"},
    {"MemoryBytes",
     [](Request& r) {
       SetMemory(r, {2, 4, 32});
       r.mutable_memory()->mutable_hidden_states()->mutable_data()->pop_back();
     },
     "memory.hidden_states.data: expected 1024 bytes for FLOAT32 [2, 4, 32]; got 1023 bytes"},
    {"MemoryOfOtherSequences",
     [](Request& r) {
       SetMemory(r, {3, 4, 32});
     },
     "memory: expected 1 or B = 2 sequences; got 3"},
    {"MemoryMaskShape",
     [](Request& r) {
       SetMemory(r, {2, 4, 32});
       *r.mutable_memory()->mutable_attention_mask() = IntegerTensor({2, 3}, {1, 1, 1, 1, 1, 1});
     },
     "memory.attention_mask.shape: expected [B, S] = [2, 4]; got [2, 3]"},
    {"MemoryMaskAndLengths",
     [](Request& r) {
       SetMemory(r, {1, 2, 32});
       *r.mutable_memory()->mutable_attention_mask() = IntegerTensor({1, 2}, {1, 1});
       r.mutable_memory()->add_lengths(2);
     },
     "memory.attention_mask: cannot be combined with lengths; send one of them"},
    {"MemoryMaskOfPacked",
     [](Request& r) {
       SetMemory(r, {2, 32});
       *r.mutable_memory()->mutable_attention_mask() = IntegerTensor({1, 2}, {1, 1});
       r.mutable_memory()->add_lengths(2);
     },
     "memory.attention_mask: cannot be combined with packed memory.hidden_states; send lengths"},
    {"MemoryLengthBeyondItsRows",
     [](Request& r) {
       SetMemory(r, {2, 4, 32});
       r.mutable_memory()->add_lengths(4);
       r.mutable_memory()->add_lengths(5);
     },
     "memory.lengths[1]: expected 0..4; got 5"},
    {"MemoryLengthsSum",
     [](Request& r) {
       SetMemory(r, {4, 32});
       r.mutable_memory()->add_lengths(3);
     },
     "memory.lengths: expected a sum of 4 (the rows of memory.hidden_states); got 3"},
    {"ValuesShape",
     [](Request& r) {
       SetMemory(r, {2, 4, 32});
       *r.mutable_memory()->mutable_values() = FloatTensor({2, 3, 32}, SomeValues(192, 3));
     },
     "memory.values.shape: expected [B, M, V] = [2, 4, 32]; got [2, 3, 32]"},
    {"PackedValuesShape",
     [](Request& r) {
       SetMemory(r, {4, 32});
       r.mutable_memory()->add_lengths(4);
       *r.mutable_memory()->mutable_values() = FloatTensor({1, 4, 32}, SomeValues(128, 3));
     },
     "memory.values.shape: expected [N, V] = [4, 32]; got [1, 4, 32]"},
    {"ValuesDtype",
     [](Request& r) {
       SetMemory(r, {1, 1, 32});
       *r.mutable_memory()->mutable_values() =
           IntegerTensor({1, 1, 32}, std::vector<int64_t>(32, 1));
     },
     "memory.values.dtype: expected FLOAT32, FLOAT16 or BFLOAT16; got INT64"},
    {"MemoryOfManyRows",
     [](Request& r) {
       SetMemory(r, {1, 251, 32});
     },
     "memory.hidden_states.shape: expected at most 250 tokens (--max-request-tokens minus the rows "
     "of hidden_states); got [1, 251]"},
    {"MemoryAndValuesOfManyRows",
     [](Request& r) {
       SetMemory(r, {1, 126, 32});
       *r.mutable_memory()->mutable_values() = r.memory().hidden_states();
     },
     "memory: expected at most 250 rows (--max-request-tokens minus the rows of hidden_states); "
     "got 252"},
    {"MemoryOfRelativePositions",
     [](Request& r) {
       r.set_model("patches");
       SetMemory(r, {2, 4, 32});
     },
     "memory: not supported by this layer: its alibi positions relate tokens of one sequence"},
    {"BiasOfMemory",
     [](Request& r) {
       SetMemory(r, {2, 4, 32});
       *r.mutable_attention_bias() = FloatTensor({1, 1, 3, 3}, SomeValues(9, 1));
     },
     "attention_bias.shape: expected [B, H, S, M] = [2, 4, 3, 4], or 1 in any dimension; got [1, "
     "1, 3, 3]"},
};
INSTANTIATE_TEST_SUITE_P(Memory, AttendRuleTest, ::testing::ValuesIn(kMemoryRules),
                         NameOfRule<Request>);

TEST(AttendLimitTest, RefusesAMemoryThatTheLayerCannotSee) {
  const auto refusal = [](const ModelDescription& description) {
    TestServerOptions options;
    options.models = ModelOf("one", description);
    TestServer server(options);
    v1::AttendRequest request = Valid();
    request.clear_model();
    SetMemory(request, {2, 4, 32});
    v1::AttendResponse response;
    const grpc::Status status = server.Attend(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  ModelDescription description = TestModels().at("tiny")->encoder->description();
  description.layer.attention.window = 3;
  EXPECT_EQ(refusal(description),
            "memory: not supported by this layer: its attention window of 3 surrounds the query in "
            "its own sequence");
  description.layer.attention.window = 0;
  description.layer.extras.bottleneck.width = 24;
  EXPECT_EQ(refusal(description),
            "memory: not supported by this layer: it attends inside a bottleneck");
}

TEST(AttendLimitTest, RefusesAnAnswerThatWouldBeTooLarge) {
  TestServerOptions options;
  options.limits.max_answer_bytes = 1000;
  TestServer server(options);
  v1::AttendResponse response;
  // 2 x 3 x 32 x 4 bytes are 768; with the probabilities, 288 more.
  v1::AttendRequest request = Valid();
  const grpc::Status fits = server.Attend(request, &response);
  EXPECT_EQ(fits.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(fits.error_message(),
            "the response would take 1024 bytes; the server allows 1000 (--max-answer-bytes)");
  request.set_output_dtype(v1::FLOAT16);
  EXPECT_TRUE(server.Attend(request, &response).ok());
  request.set_return_attention_probabilities(true);
  EXPECT_TRUE(server.Attend(request, &response).ok());
}

TEST(AttendLimitTest, NonfiniteValuesAreRefusedOnlyIfSet) {
  std::vector<float> values = SomeValues(192, 1);
  values[32 * 4 + 7] = std::nanf("");
  v1::AttendRequest request = Valid();
  *request.mutable_hidden_states() = FloatTensor({2, 3, 32}, values);
  v1::AttendResponse response;

  TestServer lenient;
  EXPECT_TRUE(lenient.Attend(request, &response).ok());
  lenient.ExpectMetrics(
      ::testing::HasSubstr("attendant_nonfinite_requests_total{model=\"tiny\"} 1"));

  TestServerOptions options;
  options.limits.nonfinite = NonfinitePolicy::kReject;
  TestServer strict(options);
  const grpc::Status status = strict.Attend(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "hidden_states[1, 1, 7]: expected a finite number; got nan");
  // Padding may hold anything.
  *request.mutable_attention_mask() = IntegerTensor({2, 3}, {1, 1, 1, 1, 0, 1});
  EXPECT_TRUE(strict.Attend(request, &response).ok());
  v1::Memory& memory = *request.mutable_memory();
  *memory.mutable_values() = request.hidden_states();
  *memory.mutable_hidden_states() = FloatTensor({2, 3, 32}, SomeValues(192, 2));
  EXPECT_EQ(strict.Attend(request, &response).error_message(),
            "memory.values[1, 1, 7]: expected a finite number; got nan");
  std::swap(*memory.mutable_values(), *memory.mutable_hidden_states());
  EXPECT_EQ(strict.Attend(request, &response).error_message(),
            "memory.hidden_states[1, 1, 7]: expected a finite number; got nan");
}

const AttendRule kAttentionRules[] = {
    {"FewGates", [](Request& r) { r.add_head_gates(1); },
     "head_gates: expected 4 numbers (one for each head); got 1"},
    {"GatesOfTwoLayers",
     [](Request& r) {
       for (int i = 0; i < 8; ++i) r.add_head_gates(1);
     },
     "head_gates: expected 4 numbers (one for each head); got 8"},
    {"NegativeGate",
     [](Request& r) {
       for (float g : {1.0f, -0.5f, 1.0f, 1.0f}) r.add_head_gates(g);
     },
     "head_gates[1]: expected a number from 0 to 1; got -0.5"},
    {"GateAboveOne",
     [](Request& r) {
       for (float g : {1.0f, 1.0f, 1.5f, 1.0f}) r.add_head_gates(g);
     },
     "head_gates[2]: expected a number from 0 to 1; got 1.5"},
    {"GateThatIsNoNumber",
     [](Request& r) {
       for (float g : {1.0f, 1.0f, 1.0f, std::nanf("")}) r.add_head_gates(g);
     },
     "head_gates[3]: expected a number from 0 to 1; got nan"},
    {"QueryRowBeyondTheLast", [](Request& r) { r.add_query_rows(6); },
     "query_rows[0]: expected 0..5; got 6"},
    {"NegativeQueryRow",
     [](Request& r) {
       r.add_query_rows(0);
       r.add_query_rows(-1);
     },
     "query_rows[1]: expected 0..5; got -1"},
    {"UnknownForm", [](Request& r) { r.set_attention_form(static_cast<v1::AttentionForm>(7)); },
     "attention_form: expected an AttentionForm value; got 7"},
    {"TopOfNothing", [](Request& r) { r.set_attention_form(v1::TOP_KEYS); },
     "attention_top_k: expected 1..3; got 0"},
    {"MoreThanAllKeys",
     [](Request& r) {
       r.set_attention_form(v1::TOP_KEYS);
       r.set_attention_top_k(4);
     },
     "attention_top_k: expected 1..3; got 4"},
    {"TopOfAnotherForm", [](Request& r) { r.set_attention_top_k(2); },
     "attention_top_k: requires attention_form TOP_KEYS"},
};
INSTANTIATE_TEST_SUITE_P(Attention, AttendRuleTest, ::testing::ValuesIn(kAttentionRules),
                         NameOfRule<Request>);

}  // namespace attend_rules_test
}  // namespace attendant::server
