// Tests of what ModelInfer refuses.
#include <cmath>
#include <limits>
#include <vector>

#include "tests/server/inference/infer_requests.h"
#include "tests/server/support/rule_test.h"

namespace attendant::server {
namespace infer_rules_test {

using R = InferRequest;

inference::InferParameter Number(int64_t value) {
  inference::InferParameter parameter;
  parameter.set_int64_param(value);
  return parameter;
}
inference::InferParameter Text(const std::string& value) {
  inference::InferParameter parameter;
  parameter.set_string_param(value);
  return parameter;
}
inference::InferParameter Flag(bool value) {
  inference::InferParameter parameter;
  parameter.set_bool_param(value);
  return parameter;
}

void Set(R& request, const std::string& name, const inference::InferParameter& value) {
  (*request.mutable_parameters())[name] = value;
}

// Replaces the raw contents by elements in lists.
void UseLists(R& request) {
  request.clear_raw_input_contents();
  for (const int64_t id : SomeIds()) {
    request.mutable_inputs(0)->mutable_contents()->add_int64_contents(id);
  }
  for (const int64_t keeps : SomeMask()) {
    request.mutable_inputs(1)->mutable_contents()->add_int64_contents(keeps);
  }
}

using InferRule = Rule<InferRequest>;
class InferRulesTest : public RuleTest<InferRequest> {};

TEST_P(InferRulesTest, Refuses) {
  InferResponse response;
  ExpectRefusal(Infer(server(), Spoiled(IdsRequest("tiny")), &response));
}

INSTANTIATE_TEST_SUITE_P(
    Model, InferRulesTest,
    ::testing::ValuesIn(std::vector<InferRule>{
        InferRule{"NoName", [](R& r) { r.clear_model_name(); },
                  "model_name: expected a model name; got none"},
        InferRule{"LongId", [](R& r) { r.set_id(std::string(257, 'a')); },
                  "id: expected at most 256 bytes; got 257"},
        InferRule{
            "UnknownName", [](R& r) { r.set_model_name("nope"); },
            R"(model: not found (no model is named "nope"); the models are "bare", "mixed", "tiny", "linear", "patches", "counting")",
            grpc::NOT_FOUND},
        InferRule{
            "UnknownHiddenName", [](R& r) { r.set_model_name("nope.hidden"); },
            R"(model: not found (no model is named "nope.hidden"); the models are "counting", "mixed", "patches", "bare", "linear", "tiny")",
            grpc::NOT_FOUND},
        InferRule{
            "SuffixAlone", [](R& r) { r.set_model_name(".hidden"); },
            R"(model: not found (no model is named ".hidden"); the models are "mixed", "bare", "linear", "patches", "tiny", "counting")",
            grpc::NOT_FOUND},
        InferRule{"UnknownVersion", [](R& r) { r.set_model_version("7"); },
                  R"(model_version: not found (model tiny has no version "7"); use 1)",
                  grpc::NOT_FOUND},
        InferRule{"VersionIsNoNumber", [](R& r) { r.set_model_version("new"); },
                  R"(model_version: expected a number or an empty string; got "new")"}}),
    NameOfRule<InferRequest>);

INSTANTIATE_TEST_SUITE_P(
    Inputs, InferRulesTest,
    ::testing::ValuesIn(std::vector<InferRule>{
        InferRule{"NoInputs",
                  [](R& r) {
                    r.clear_inputs();
                    r.clear_raw_input_contents();
                  },
                  "inputs: expected an input input_ids (model tiny requires it); got none"},
        InferRule{"Unknown", [](R& r) { r.mutable_inputs(1)->set_name("mask"); },
                  "inputs: expected one of input_ids, attention_mask, token_type_ids, "
                  "position_ids; got \"mask\""},
        InferRule{"Twice", [](R& r) { r.mutable_inputs(1)->set_name("input_ids"); },
                  "inputs: expected each name once; got input_ids twice"},
        InferRule{"OfNoDatatype", [](R& r) { r.mutable_inputs(0)->set_datatype("LONG"); },
                  "input_ids.datatype: expected one of BOOL, UINT8, UINT16, UINT32, UINT64, INT8, "
                  "INT16, INT32, INT64, FP16, FP32, BF16; got \"LONG\""},
        InferRule{"OfFloats", [](R& r) { r.mutable_inputs(0)->set_datatype("FP16"); },
                  "input_ids.datatype: expected an integer type; got FP16"},
        InferRule{"OfRankThree", [](R& r) { r.mutable_inputs(0)->add_shape(1); },
                  "input_ids.shape: expected 2 dimensions; got 3"},
        InferRule{"EmptyBatch", [](R& r) { r.mutable_inputs(0)->set_shape(0, 0); },
                  "input_ids.shape: expected dimensions of at least 1; got [0, 4]"},
        InferRule{"NegativeLength", [](R& r) { r.mutable_inputs(0)->set_shape(1, -4); },
                  "input_ids.shape: expected dimensions of at least 1; got [2, -4]"},
        InferRule{"ImmeasurableShape",
                  [](R& r) {
                    r.mutable_inputs(0)->set_shape(0, int64_t{1} << 62);
                    r.mutable_inputs(0)->set_shape(1, int64_t{1} << 62);
                  },
                  "input_ids.shape: expected a size that fits into 64 bits; got "
                  "[4611686018427387904, 4611686018427387904]"},
        InferRule{"MaskOfAnotherShape",
                  [](R& r) {
                    r.mutable_inputs(1)->set_shape(0, 4);
                    r.mutable_inputs(1)->set_shape(1, 2);
                  },
                  "attention_mask.shape: expected [B, S] = [2, 4]; got [4, 2]"},
        InferRule{"OutsideTheVocabulary",
                  [](R& r) {
                    std::vector<int64_t> ids = SomeIds();
                    ids[2] = 100;
                    *r.mutable_raw_input_contents(0) = RawOf(ids);
                  },
                  "input_ids[0, 2]: expected 0..99; got 100"},
        InferRule{"InSharedMemory",
                  [](R& r) {
                    (*r.mutable_inputs(0)->mutable_parameters())["shared_memory_region"] =
                        Text("region");
                  },
                  "input_ids.parameters.shared_memory_region: not supported; send the data"}}),
    NameOfRule<InferRequest>);

INSTANTIATE_TEST_SUITE_P(
    Contents, InferRulesTest,
    ::testing::ValuesIn(std::vector<InferRule>{
        InferRule{"ListsBesideRaw",
                  [](R& r) { r.mutable_inputs(0)->mutable_contents()->add_int64_contents(1); },
                  "input_ids.contents: cannot be combined with raw_input_contents"},
        InferRule{"TooFewRaw", [](R& r) { r.mutable_raw_input_contents()->RemoveLast(); },
                  "raw_input_contents: expected 2 elements (one for each input); got 1"},
        InferRule{"TooManyRaw", [](R& r) { r.add_raw_input_contents("more"); },
                  "raw_input_contents: expected 2 elements (one for each input); got 3"},
        InferRule{"VeryManyRaw",
                  [](R& r) {
                    for (int64_t i = 0; i < kMostRepeatedPayloads; ++i) r.add_raw_input_contents();
                  },
                  "raw_input_contents: expected 2 elements (one for each input); got more"},
        InferRule{"ShortRaw", [](R& r) { r.mutable_raw_input_contents(0)->pop_back(); },
                  "input_ids.data: expected 64 bytes for INT64 [2, 4]; got 63 bytes"},
        InferRule{"NoContents",
                  [](R& r) {
                    UseLists(r);
                    r.mutable_inputs(0)->clear_contents();
                  },
                  "input_ids.data: expected 64 bytes for INT64 [2, 4]; got 0 bytes"},
        InferRule{"ShortList",
                  [](R& r) {
                    UseLists(r);
                    r.mutable_inputs(0)->mutable_contents()->mutable_int64_contents()->RemoveLast();
                  },
                  "input_ids.data: expected 64 bytes for INT64 [2, 4]; got 56 bytes"},
        InferRule{"WrongList",
                  [](R& r) {
                    UseLists(r);
                    r.mutable_inputs(0)->mutable_contents()->add_int_contents(1);
                  },
                  "input_ids.contents: expected all elements in one list; got 9 in several lists"},
        InferRule{"AFractionInAList",
                  [](R& r) {
                    UseLists(r);
                    auto& contents = *r.mutable_inputs(1)->mutable_contents();
                    contents.clear_int64_contents();
                    for (int i = 0; i < 8; ++i) contents.add_fp64_contents(i == 5 ? 0.5 : 1);
                  },
                  "attention_mask.contents[5]: expected a value of INT64; got 0.5"},
        InferRule{"TwoAsAFlag",
                  [](R& r) {
                    UseLists(r);
                    r.mutable_inputs(1)->set_datatype("BOOL");
                    r.mutable_inputs(1)->mutable_contents()->set_int64_contents(3, 2);
                  },
                  "attention_mask.contents[3]: expected a value of BOOL; got 2"},
        InferRule{"TextsInAList",
                  [](R& r) {
                    UseLists(r);
                    r.mutable_inputs(1)->mutable_contents()->add_bytes_contents("1");
                  },
                  "attention_mask.contents: expected numbers; got bytes_contents"},
        InferRule{"ListOfHalves",
                  [](R& r) {
                    UseLists(r);
                    r.mutable_inputs(1)->set_datatype("BF16");
                  },
                  "attention_mask.contents: not supported for BF16; use raw_input_contents"},
        InferRule{"TooWideForItsDatatype",
                  [](R& r) {
                    UseLists(r);
                    r.mutable_inputs(1)->set_datatype("INT8");
                    auto& contents = *r.mutable_inputs(1)->mutable_contents();
                    contents.clear_int64_contents();
                    for (int i = 0; i < 8; ++i) contents.add_int_contents(i == 5 ? 128 : 1);
                  },
                  "attention_mask.contents[5]: expected a value of INT8; got 128"}}),
    NameOfRule<InferRequest>);

INSTANTIATE_TEST_SUITE_P(
    Outputs, InferRulesTest,
    ::testing::ValuesIn(std::vector<InferRule>{
        InferRule{"Unknown", [](R& r) { Ask(r, {"pooler_output"}); },
                  "outputs: expected one of last_hidden_state, sentence_embedding, "
                  "token_embeddings, hidden_states.N with N in 1..2, attentions.N with N in 0..1; "
                  "got \"pooler_output\""},
        InferRule{"Twice",
                  [](R& r) {
                    Ask(r, {"sentence_embedding", "sentence_embedding"});
                  },
                  "outputs: expected each result once; got sentence_embedding twice"},
        InferRule{"UnderTwoNames",
                  [](R& r) {
                    Ask(r, {"last_hidden_state", "token_embeddings"});
                  },
                  "outputs: expected each result once; got last_hidden_state and token_embeddings"},
        InferRule{"OfNoHead", [](R& r) { Ask(r, {"logits"}); },
                  "outputs: expected one of last_hidden_state, sentence_embedding, "
                  "token_embeddings, hidden_states.N with N in 1..2, attentions.N with N in 0..1; "
                  "got \"logits\""},
        InferRule{"OfTheEmbeddings", [](R& r) { Ask(r, {"hidden_states.0"}); },
                  "outputs: expected one of last_hidden_state, sentence_embedding, "
                  "token_embeddings, hidden_states.N with N in 1..2, attentions.N with N in 0..1; "
                  "got \"hidden_states.0\""},
        InferRule{"WithAZeroBefore", [](R& r) { Ask(r, {"hidden_states.01"}); },
                  "outputs: expected one of last_hidden_state, sentence_embedding, "
                  "token_embeddings, hidden_states.N with N in 1..2, attentions.N with N in 0..1; "
                  "got \"hidden_states.01\""},
        InferRule{"OfNoLayer", [](R& r) { Ask(r, {"attentions.2"}); },
                  "outputs: expected one of last_hidden_state, sentence_embedding, "
                  "token_embeddings, hidden_states.N with N in 1..2, attentions.N with N in 0..1; "
                  "got \"attentions.2\""},
        InferRule{"ContextOfIds", [](R& r) { Ask(r, {"context_layer"}); },
                  "outputs: \"context_layer\" not supported by model \"tiny\": its inputs are not "
                  "hidden states; use model tiny.hidden"},
        InferRule{"Classified",
                  [](R& r) {
                    Ask(r, {"sentence_embedding"});
                    (*r.mutable_outputs(0)->mutable_parameters())["classification"] = Number(3);
                  },
                  "sentence_embedding.parameters.classification: not supported; all class scores "
                  "are returned"},
        InferRule{"InSharedMemory",
                  [](R& r) {
                    Ask(r, {"sentence_embedding"});
                    (*r.mutable_outputs(0)->mutable_parameters())["shared_memory_region"] =
                        Text("region");
                  },
                  "sentence_embedding.parameters.shared_memory_region: not supported; send the "
                  "data"}}),
    NameOfRule<InferRequest>);

INSTANTIATE_TEST_SUITE_P(
    Parameters, InferRulesTest,
    ::testing::ValuesIn(std::vector<InferRule>{
        InferRule{"NegativePriority", [](R& r) { Set(r, "priority", Number(-1)); },
                  "parameters.priority: expected 0 or more; got -1"},
        InferRule{"PriorityOfText", [](R& r) { Set(r, "priority", Text("high")); },
                  "parameters.priority: expected an int64; got a string"},
        InferRule{"NegativeTimeout", [](R& r) { Set(r, "timeout", Number(-5)); },
                  "parameters.timeout: expected 0 or more microseconds; got -5"},
        InferRule{"TimeoutOfAFraction",
                  [](R& r) { (*r.mutable_parameters())["timeout"].set_double_param(0.5); },
                  "parameters.timeout: expected an int64; got a double"},
        InferRule{"StartOfSequence", [](R& r) { Set(r, "sequence_start", Flag(true)); },
                  "parameters.sequence_start: not supported; use EncodeStream of attendant.v1 for "
                  "sequences in chunks"},
        InferRule{"StageOfIds", [](R& r) { Set(r, "stage", Text("context")); },
                  "parameters.stage: \"context\" not supported by model \"tiny\": its inputs are "
                  "not hidden states; use model tiny.hidden"},
        InferRule{"StageOfNumber", [](R& r) { Set(r, "stage", Number(1)); },
                  "parameters.stage: expected a string; got an int64"},
        InferRule{"FirstLayerBehindTheLast", [](R& r) { Set(r, "first_layer", Number(2)); },
                  "parameters.first_layer: expected 0..1; got 2"},
        InferRule{"IdsBehindTheFirstLayer", [](R& r) { Set(r, "first_layer", Number(1)); },
                  "layers.first: expected 0 with input_ids; got 1"},
        InferRule{"NoLayers", [](R& r) { Set(r, "layer_count", Number(0)); },
                  "parameters.layer_count: expected 1..2; got 0"},
        InferRule{"TooManyLayers", [](R& r) { Set(r, "layer_count", Number(3)); },
                  "parameters.layer_count: expected 1..2; got 3"},
        InferRule{"OutputOfIntegers", [](R& r) { Set(r, "output_datatype", Text("INT8")); },
                  "parameters.output_datatype: expected FP32, FP16 or BF16; got \"INT8\""},
        InferRule{"NormalizeOfNumber", [](R& r) { Set(r, "normalize", Number(2)); },
                  "parameters.normalize: expected a bool; got an int64"},
        InferRule{"PromptTokensOfText", [](R& r) { Set(r, "prompt_tokens", Text("3")); },
                  "parameters.prompt_tokens: expected an int64; got a string"},
        InferRule{"NegativePromptTokens", [](R& r) { Set(r, "prompt_tokens", Number(-1)); },
                  "prompt_tokens[0]: expected 0 or more; got -1"},
        InferRule{"TaskOfNumber", [](R& r) { Set(r, "task", Number(1)); },
                  "parameters.task: expected a string; got an int64"},
        InferRule{"TruncateOfText", [](R& r) { Set(r, "truncate", Text("right")); },
                  "parameters.truncate: expected a bool; got a string"}}),
    NameOfRule<InferRequest>);

// A valid request for hidden states.
InferRequest HiddenRequest() {
  InferRequest request;
  request.set_model_name("tiny.hidden");
  AddRaw(request, "hidden_states", "FP32", {1, 3, 32}, std::vector<float>(96, 0.5f));
  return request;
}

class InferHiddenRulesTest : public RuleTest<InferRequest> {};

TEST_P(InferHiddenRulesTest, Refuses) {
  InferResponse response;
  ExpectRefusal(Infer(server(), Spoiled(HiddenRequest()), &response));
}

INSTANTIATE_TEST_SUITE_P(
    Hidden, InferHiddenRulesTest,
    ::testing::ValuesIn(std::vector<InferRule>{
        InferRule{
            "OfAnotherWidth",
            [](R& r) {
              r.mutable_inputs(0)->set_shape(1, 2);
              r.mutable_inputs(0)->set_shape(2, 48);
            },
            "hidden_states.shape: expected [B, S, 32], or [T, 32] with lengths; got [1, 2, 48]"},
        InferRule{"OfIntegers", [](R& r) { r.mutable_inputs(0)->set_datatype("INT32"); },
                  "hidden_states.datatype: expected FP32, FP16 or BF16; got INT32"},
        InferRule{"Ids", [](R& r) { r.mutable_inputs(0)->set_name("input_ids"); },
                  "inputs: expected one of hidden_states, attention_mask; got \"input_ids\""},
        InferRule{"UnknownStage", [](R& r) { Set(r, "stage", Text("norm")); },
                  "parameters.stage: expected context, projected or block; got \"norm\""},
        InferRule{"StageOfNoLayer",
                  [](R& r) {
                    Set(r, "stage", Text("block"));
                    Set(r, "layer", Number(2));
                  },
                  "parameters.layer: expected 0..1; got 2"},
        InferRule{"StatesOfAStage",
                  [](R& r) {
                    Set(r, "stage", Text("context"));
                    Ask(r, {"last_hidden_state"});
                  },
                  "outputs: expected context_layer or attentions, with a stage; got "
                  "\"last_hidden_state\""}}),
    NameOfRule<InferRequest>);

}  // namespace infer_rules_test
}  // namespace attendant::server
