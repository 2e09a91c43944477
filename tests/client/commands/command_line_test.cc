#include "client/commands/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/files/tensor_file.h"
#include "client/service_config.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/client/support/fake_server.h"
#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace command_line_test {

using nlohmann::json;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class CommandLineTest : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--address", server_.address()});
    return RunWith(arguments);
  }

  json RunJson(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }

  FakeServer server_;
};

TEST_F(CommandLineTest, AttendPrintsTheOutput) {
  const Outcome outcome = Run({"attend", "--values", "1,0,1,0;0,2,0,2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "output float32 [1, 2, 4]\n"
            "  [0]\n"
            "    1.000000 0.000000 1.000000 0.000000\n"
            "    0.000000 2.000000 0.000000 2.000000\n"
            "3 tokens in a batch of 6 (2 requests), f32: queue 1.500 ms, copy 0.250 ms, compute "
            "8.000 ms\n");
}

TEST_F(CommandLineTest, AttendSendsItsFlags) {
  const Outcome outcome = Run({"attend",
                               "--model",
                               "m",
                               "--layer",
                               "2",
                               "--stage",
                               "block",
                               "--generate",
                               "2x3x4",
                               "--mask",
                               "1,1,0;1,1,1",
                               "--wire-dtype",
                               "float16",
                               "--output-dtype",
                               "float32",
                               "--request-id",
                               "r",
                               "--probabilities",
                               "--head-gates",
                               "1,0.5",
                               "--query-rows",
                               "3,0",
                               "--top-keys",
                               "2",
                               "--weighted-values"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const v1::AttendRequest sent = server_.attended().at(0);
  EXPECT_EQ(sent.model(), "m");
  EXPECT_EQ(sent.layer(), 2u);
  EXPECT_EQ(sent.stage(), v1::BLOCK);
  EXPECT_EQ(sent.hidden_states().dtype(), v1::FLOAT16);
  EXPECT_THAT(sent.hidden_states().shape(), ElementsAre(2, 3, 4));
  EXPECT_THAT(sent.attention_mask().shape(), ElementsAre(2, 3));
  EXPECT_EQ(sent.output_dtype(), v1::FLOAT32);
  EXPECT_EQ(sent.request_id(), "r");
  EXPECT_THAT(sent.head_gates(), ElementsAre(1.0f, 0.5f));
  EXPECT_THAT(sent.query_rows(), ElementsAre(3, 0));
  EXPECT_EQ(sent.attention_form(), v1::TOP_KEYS);
  EXPECT_EQ(sent.attention_top_k(), 2u);
  EXPECT_TRUE(sent.return_weighted_values());
  for (const char* tensor : {"attention_probabilities", "attention_keys", "weighted_values"}) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string(tensor) + " float16 [2, 3, 4]"));
  }
}

TEST_F(CommandLineTest, TheMeanOverTheHeadsIsNoListOfKeys) {
  EXPECT_EQ(Run({"attend", "--values", "1,2", "--probabilities", "--head-mean"}).exit_code, 0);
  EXPECT_EQ(server_.attended().at(0).attention_form(), v1::HEAD_MEAN);
  EXPECT_EQ(Run({"attend", "--values", "1,2", "--head-mean", "--top-keys", "2"}).exit_code, 2);
}

TEST_F(CommandLineTest, ExplainRefusesWhatItCannotShow) {
  const auto packed = Run({"explain", "--values", "1,2;3,4", "--lengths", "2"});
  EXPECT_EQ(packed.exit_code, 2);
  EXPECT_THAT(packed.err,
              HasSubstr("explain: expected hidden states [B, S, E], not packed; got [2, 2]"));
  const std::string bias = ScratchPath("bias.npy");
  ASSERT_TRUE(WriteTensors(bias, {{"", FloatTensor({1, 1, 1, 1}, {0.0f})}}).ok());
  const auto biased = Run({"explain", "--values", "1,2", "--bias", bias});
  EXPECT_EQ(biased.exit_code, 2);
  EXPECT_THAT(biased.err, HasSubstr("explain: cannot be combined with --bias"));
  EXPECT_EQ(Run({"explain", "--values", "1,2", "--round", "7"}).exit_code, 2);
  EXPECT_EQ(Run({"explain", "--values", "1,2"}).exit_code, 1);  // the answer is not attention
}

TEST_F(CommandLineTest, AttendSendsAMemory) {
  const Outcome outcome = Run({"attend", "--values", "1,2;3,4", "--memory", "1,2;3,4;5,6",
                               "--memory-values", "1,2,3;4,5,6;7,8,9", "--memory-mask", "1,1,0"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const v1::Memory sent = server_.attended().at(0).memory();
  EXPECT_THAT(sent.hidden_states().shape(), ElementsAre(1, 3, 2));
  EXPECT_THAT(sent.values().shape(), ElementsAre(1, 3, 3));
  EXPECT_THAT(sent.attention_mask().shape(), ElementsAre(1, 3));
  ASSERT_EQ(Run({"attend", "--values", "1,2", "--memory", "1,2;3,4;5,6", "--memory-lengths", "3"})
                .exit_code,
            0);
  EXPECT_THAT(server_.attended().at(1).memory().hidden_states().shape(), ElementsAre(3, 2));
  EXPECT_THAT(server_.attended().at(1).memory().lengths(), ElementsAre(3));
}

TEST_F(CommandLineTest, RowsOfAMemoryMayBeFractions) {
  const Outcome outcome =
      Run({"attend", "--values", "1,2", "--memory", "-0.5,2;3,4e-1", "--memory-values", "1.5;2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const v1::Memory sent = server_.attended().at(0).memory();
  EXPECT_EQ(sent.hidden_states().data(), FloatTensor({2, 2}, {-0.5f, 2.0f, 3.0f, 0.4f}).data);
  EXPECT_EQ(sent.values().data(), FloatTensor({2, 1}, {1.5f, 2.0f}).data);
}

TEST_F(CommandLineTest, RegistersAMemoryForLater) {
  const Outcome put = Run({"put-memory", "--model", "m", "--layer", "2", "--memory", "1,2;3,4",
                           "--time-to-live", "1.5s"});
  EXPECT_EQ(put.exit_code, 0) << put.err;
  EXPECT_EQ(put.out, "h1\n");
  EXPECT_EQ(put.err, "96 bytes, until 1970-01-01T00:16:40+00:00\n");
  EXPECT_EQ(server_.put().at(0).layer(), 2u);
  EXPECT_EQ(server_.put().at(0).time_to_live_ms(), 1500);
  const json document = RunJson({"put-memory", "--memory", "1,2;3,4"});
  EXPECT_EQ(document["handle"], "h1");
  EXPECT_EQ(document["bytes"], 96);
  ASSERT_EQ(Run({"attend", "--values", "1,2", "--memory-handle", "h1"}).exit_code, 0);
  EXPECT_EQ(server_.attended().at(0).memory_handle(), "h1");
  EXPECT_EQ(Run({"drop-memory", "h1"}).out, "dropped 96 bytes\n");
  EXPECT_EQ(RunJson({"drop-memory", "h1"})["bytes"], 96);
  EXPECT_EQ(Run({"drop-memory", "h2"}).exit_code, 1);
}

// A lone sequence gets its batch dimension where torch has it; masks stay as they are.
TEST_F(CommandLineTest, SequencesMayBeFirst) {
  ASSERT_EQ(Run({"attend", "--sequence-first", "--values", "1,2;3,4;5,6", "--mask", "1,1,0",
                 "--memory", "1,2;3,4"})
                .exit_code,
            0);
  const v1::AttendRequest attended = server_.attended().at(0);
  EXPECT_EQ(attended.layout(), v1::SEQUENCE_FIRST);
  EXPECT_THAT(attended.hidden_states().shape(), ElementsAre(3, 1, 2));
  EXPECT_THAT(attended.attention_mask().shape(), ElementsAre(1, 3));
  EXPECT_THAT(attended.memory().hidden_states().shape(), ElementsAre(2, 1, 2));

  ASSERT_EQ(Run({"encode", "--sequence-first", "--token-ids", "7,9;8,10;9,11"}).exit_code, 0);
  EXPECT_EQ(server_.encoded().at(0).layout(), v1::SEQUENCE_FIRST);
  EXPECT_THAT(server_.encoded().at(0).token_ids().shape(), ElementsAre(3, 2));
  ASSERT_EQ(Run({"encode", "--token-ids", "7,9"}).exit_code, 0);
  EXPECT_EQ(server_.encoded().at(1).layout(), v1::BATCH_FIRST);

  ASSERT_EQ(Run({"put-memory", "--sequence-first", "--memory", "1,2;3,4"}).exit_code, 0);
  EXPECT_EQ(server_.put().at(0).layout(), v1::SEQUENCE_FIRST);
  EXPECT_THAT(server_.put().at(0).memory().hidden_states().shape(), ElementsAre(2, 1, 2));
}

TEST_F(CommandLineTest, RefusesMemoriesThatAreNone) {
  EXPECT_EQ(Run({"put-memory"}).exit_code, 2);
  EXPECT_EQ(Run({"attend", "--values", "1,2", "--memory-mask", "1"}).exit_code, 2);
  EXPECT_EQ(
      Run({"attend", "--values", "1,2", "--memory", "1,2", "--memory-handle", "h1"}).exit_code, 2);
  const Outcome missing = Run({"attend", "--values", "1,2", "--memory", "no_such_file.npy"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("--memory: "));
}

TEST_F(CommandLineTest, AttendPrintsJson) {
  const json document = RunJson({"attend", "--values", "0.1,2"});
  EXPECT_EQ(document["output"]["dtype"], "float32");
  EXPECT_EQ(document["output"]["shape"], (json{1, 1, 2}));
  EXPECT_EQ(document["output"]["values"].dump(), "[[[0.1,2.0]]]");
  EXPECT_EQ(document["execution"]["compute_ms"], 8.0);
}

TEST_F(CommandLineTest, GeneratedValuesFollowTheSeed) {
  for (const char* seed : {"1", "1", "2"}) {
    ASSERT_EQ(Run({"attend", "--generate", "1x2x4", "--seed", seed}).exit_code, 0);
  }
  const auto sent = server_.attended();
  EXPECT_EQ(sent[0].hidden_states().data(), sent[1].hidden_states().data());
  EXPECT_NE(sent[0].hidden_states().data(), sent[2].hidden_states().data());
}

TEST_F(CommandLineTest, TheModelSaysHowWideGeneratedValuesAre) {
  ASSERT_EQ(Run({"encode", "--generate", "2x3"}).exit_code, 0);
  EXPECT_THAT(server_.encoded().at(0).hidden_states().shape(), ElementsAre(2, 3, 4));
  EXPECT_EQ(Run({"attend", "--generate", "2x3", "--model", "c"}).exit_code, 1);
}

TEST_F(CommandLineTest, ShowsTheInput) {
  const Outcome outcome = Run({"encode", "--token-ids", "7,8", "--mask", "1,0", "--show-input"});
  EXPECT_THAT(outcome.out,
              HasSubstr("token_ids int64 [1, 2]\n    7 8\nattention_mask int64 [1, 2]\n"
                        "    1 0\nhidden_states float32 [1, 2, 2]\n"));
}

TEST_F(CommandLineTest, PoolsAsTheCheckpointSays) {
  ASSERT_EQ(Run({"encode", "--token-ids", "7,8", "--pooled"}).exit_code, 0);
  EXPECT_TRUE(server_.encoded().at(0).return_pooled());
  EXPECT_EQ(server_.encoded().at(0).pooling(), v1::MODEL_POOLING);
}

TEST_F(CommandLineTest, LengthsMakeItPacked) {
  ASSERT_EQ(Run({"attend", "--generate", "5", "--lengths", "3,2"}).exit_code, 0);
  const v1::AttendRequest sent = server_.attended().at(0);
  EXPECT_THAT(sent.hidden_states().shape(), ElementsAre(5, 4));
  EXPECT_THAT(sent.lengths(), ElementsAre(3, 2));
}

TEST_F(CommandLineTest, FilesInAndOut) {
  const std::string input = ScratchPath("in.npy");
  const Tensor bias = FloatTensor({1, 1, 1, 2}, {0.0f, -1.0f});
  ASSERT_TRUE(WriteTensors(input, {{"", FloatTensor({1, 1, 2}, {1.5f, 2.5f})}}).ok());
  ASSERT_TRUE(WriteTensors(ScratchPath("bias.npy"), {{"", bias}}).ok());
  const std::string output = ScratchPath("out.safetensors");
  const json document = RunJson({"attend", "--input", input, "--bias", ScratchPath("bias.npy"),
                                 "--output", output, "--probabilities"});
  EXPECT_EQ(document["output"]["file"], output);
  EXPECT_FALSE(document["output"].contains("values"));
  EXPECT_THAT(ToFloats(ReadTensor(output + ":output").value()).value(), ElementsAre(1.5f, 2.5f));
  EXPECT_TRUE(ReadTensor(output + ":attention_probabilities").ok());
  EXPECT_EQ(server_.attended().at(0).attention_bias().data(), bias.data);
}

TEST_F(CommandLineTest, EncodeSendsItsFlags) {
  const json document = RunJson({"encode",
                                 "--model",
                                 "m",
                                 "--layers",
                                 "0:6",
                                 "--token-ids",
                                 "101,7;5,102",
                                 "--token-type-ids",
                                 "0,0;1,1",
                                 "--position-ids",
                                 "0,1;0,1",
                                 "--mask",
                                 "1,1;1,0",
                                 "--intermediate",
                                 "0,5",
                                 "--attention-layers",
                                 "3",
                                 "--pooled",
                                 "mean",
                                 "--normalize",
                                 "--no-hidden-states"});
  const v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_EQ(sent.layers().count(), 6u);
  EXPECT_THAT(sent.token_ids().shape(), ElementsAre(2, 2));
  EXPECT_THAT(sent.token_type_ids().shape(), ElementsAre(2, 2));
  EXPECT_THAT(sent.position_ids().shape(), ElementsAre(2, 2));
  EXPECT_THAT(sent.intermediate_layers(), ElementsAre(0, 5));
  EXPECT_THAT(sent.attention_layers(), ElementsAre(3));
  EXPECT_TRUE(sent.return_pooled());
  EXPECT_EQ(sent.pooling(), v1::MEAN);
  EXPECT_TRUE(sent.normalize_pooled());
  EXPECT_TRUE(sent.omit_hidden_states());
  EXPECT_FALSE(document.contains("hidden_states"));
  for (const char* name :
       {"pooled", "intermediate.0", "intermediate.5", "attention_probabilities.3", "execution"}) {
    EXPECT_TRUE(document.contains(name)) << name;
  }
}

TEST_F(CommandLineTest, PromptsAndTasksAreSent) {
  RunJson({"encode", "--token-ids", "1,2;3,4", "--pooled", "--prompt-tokens", "1,0", "--task",
           "query"});
  const v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_THAT(sent.prompt_tokens(), ElementsAre(1, 0));
  EXPECT_EQ(sent.task(), "query");
}

TEST_F(CommandLineTest, SparseVectorsAreThreeTensors) {
  const json answer =
      RunJson({"encode", "--token-ids", "1,2;3,4", "--sparse", "--no-hidden-states"});
  EXPECT_TRUE(server_.encoded().at(0).return_sparse());
  EXPECT_EQ(answer["sparse_counts"]["values"], json::array({2, 1}));
  EXPECT_EQ(answer["sparse_indices"]["values"], json::array({3, 7, 5}));
  EXPECT_EQ(answer["sparse_weights"]["values"], json::array({0.5, 1.5, 0.25}));
  const Outcome outcome =
      Run({"encode", "--token-ids", "1", "--sparse", "--no-hidden-states", "--output", "x.npy"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("expected one tensor for .npy"));
}

TEST_F(CommandLineTest, RaggedTokenIdsArePacked) {
  ASSERT_EQ(Run({"encode", "--token-ids", "101,2023,102;101,102"}).exit_code, 0);
  const v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_THAT(sent.token_ids().shape(), ElementsAre(5));
  EXPECT_THAT(sent.lengths(), ElementsAre(3, 2));
  EXPECT_EQ(Run({"encode", "--token-ids", "1,2,3;1,2", "--token-type-ids", "0,0,1;0,1",
                 "--position-ids", "2,1,0;1,0", "--lengths", "3,2"})
                .exit_code,
            0);
}

TEST_F(CommandLineTest, FeaturesTakeThePlaceOfHiddenStates) {
  Run({"encode", "--values", "1,0;0,2;1,1", "--features"});
  const v1::EncodeRequest request = server_.encoded().at(0);
  EXPECT_FALSE(request.has_hidden_states());
  EXPECT_THAT(request.features().shape(), ElementsAre(1, 3, 2));
}

TEST_F(CommandLineTest, ModelsListsAndDescribes) {
  const Outcome table = Run({"models"});
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_EQ(table.out,
            "NAME  FAMILY  LAYERS  HIDDEN  HEADS  COMPUTE   INPUT\n"
            "a     bert        12       4      2  f32       texts, hidden states, token ids, "
            "features\n"
            "b     bert        12       4      2  f32       hidden states, token ids, features\n");
  EXPECT_EQ(Run({"models", "--names"}).out, "a\nb\n");
  const Outcome one = Run({"models", "b"});
  EXPECT_EQ(one.exit_code, 0);
  for (const char* line :
       {"layers                   12, with 4 weight sets\n",
        "feed-forward             8, gelu, gated\n",
        "norm                     rms, post, epsilon 0, final norm\n",
        "branch scale             yes\n", "listed pairs             1 of blocks of 64 tokens\n",
        "listed global            1 blocks of 64 tokens\n", "relative positions       rotary\n",
        "features                 of width 4; 2 prefix tokens; up to 196\n",
        "compute type             f32; ISA avx2\n", "matrix products          mixed\n",
        "heads of layer 3         1\n", "heads of layer 5         none left\n",
        "FLOPs                    96 per token, 8 per pair of query and key, 32 per sequence\n",
        "  attention.qkv          96 per token\n", "  attention.scores       8 per pair\n",
        "  pooling.dense          32 per sequence\n", "rows per thread          from 512 tokens\n",
        "unused tensors           cls.bias\n",
        "texts                    no: its directory has no tokenizer.json\n"}) {
    EXPECT_THAT(one.out, HasSubstr(line));
  }
  const json document = RunJson({"models"});
  EXPECT_EQ(document["models"].size(), 2u);
  EXPECT_EQ(document["models"][0]["layer"]["score_scale"], 0.125);
  EXPECT_EQ(document["models"][0]["embeddings"]["longest_sequence"], 512);
  EXPECT_EQ(document["models"][0]["layer"]["relative_positions"], "rotary");
  EXPECT_EQ(document["models"][0]["layer"]["window_block"], 64);
  EXPECT_EQ(document["models"][0]["layer"]["full_attention_up_to"], 704);
  EXPECT_EQ(document["models"][0]["front"].dump(),
            R"({"feature_width":4,"features":196,"image_size":0,"needs_every":false,"own_rows":2,)"
            R"("patch_size":0})");
  EXPECT_EQ(document["models"][0]["windowed_layers"].dump(), "[1]");
  EXPECT_EQ(document["models"][0]["block_pairs"].dump(), "[[5,9]]");
  EXPECT_EQ(document["models"][0]["global_blocks"].dump(), "[12]");
  EXPECT_EQ(document["models"][0]["weight_sets"], 4);
  EXPECT_EQ(document["models"][0]["gemm"], "mixed");
  EXPECT_EQ(document["models"][0]["pruned_layers"].dump(),
            R"([{"heads":[1],"layer":3},{"heads":[],"layer":5}])");
  EXPECT_EQ(document["models"][0]["stage_costs"][1]["flops_per_pair"], 8);
  EXPECT_EQ(Run({"models", "c"}).exit_code, 1);
}

TEST_F(CommandLineTest, TokenizerShowsAndSaves) {
  const std::string file = ScratchPath("tokenizer.json");
  const Outcome shown = Run({"tokenizer", "a", "--output", file});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out,
            "tokenizer.json           2 bytes\n"
            "longest sequence         256 tokens\n"
            "lower case               yes\n"
            "prompt                   passage: \"passage:\\n\"\n"
            "prompt                   query (default): \"query: \"\n"
            "labels                   good, bad\n"
            "special token            cls 101\n"
            "special token            sep 102\n");
  EXPECT_EQ(FileBytes(file), "{}");
  const json document = RunJson({"tokenizer", "a"});
  EXPECT_EQ(document["tokenizer_json_bytes"], 2);
  EXPECT_EQ(document["prompts"]["query"], "query: ");
  EXPECT_EQ(document["labels"].dump(), R"(["good","bad"])");
  EXPECT_EQ(document["special_ids"]["sep"], 102);
  EXPECT_EQ(Run({"tokenizer", "b"}).exit_code, 1);
  EXPECT_EQ(Run({"tokenizer", "a", "--output", "/nowhere/at/all"}).exit_code, 2);
}

TEST_F(CommandLineTest, HealthIsAnExitCode) {
  EXPECT_EQ(Run({"health"}).out, "SERVING\n");
  EXPECT_EQ(Run({"health", "a"}).exit_code, 0);
  EXPECT_EQ(RunJson({"health", "a"})["status"], "SERVING");
  EXPECT_EQ(Run({"health", "unknown"}).exit_code, 1);
  server_.set_healthy(false);
  const Outcome outcome = Run({"health"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "NOT_SERVING\n");
}

TEST_F(CommandLineTest, RefusalsExitWith1) {
  server_.set_status({grpc::StatusCode::INVALID_ARGUMENT, "layer: expected 0..11, got 12"});
  const Outcome outcome = Run({"attend", "--values", "1", "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "attendant-client: " + server_.address() +
                             ": INVALID_ARGUMENT: layer: expected 0..11, got 12\n");
  EXPECT_EQ(json::parse(outcome.out),
            (json{{"error",
                   {{"code", "INVALID_ARGUMENT"}, {"message", "layer: expected 0..11, got 12"}}}}));
  EXPECT_EQ(Run({"encode", "--values", "1"}).exit_code, 1);
}

TEST_F(CommandLineTest, UnreachableExitsWith3) {
  const std::string address = DeadAddress();
  for (const char* command : {"models", "health"}) {
    const Outcome outcome = RunWith({command, "--address", address});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err, HasSubstr(address + ": UNAVAILABLE: "));
  }
  EXPECT_EQ(RunWith({"attend", "--values", "1", "--address", address}).exit_code, 3);
  server_.set_status({grpc::StatusCode::UNAVAILABLE, "draining"});
  EXPECT_EQ(Run({"attend", "--values", "1"}).exit_code, 3);
}

TEST_F(CommandLineTest, ServiceConfigPrintsWhatTheLibraryUses) {
  const Outcome outcome = RunWith({"service-config"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, ServiceConfig());
  EXPECT_EQ(RunWith({"service-config", "--behind-proxy"}).out,
            ServiceConfig(HealthChecks::kOfProxy));
}

TEST_F(CommandLineTest, BadUsageExitsWith2) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "attendant-client: expected a command; got none; see attendant-client --help\n"},
      {{"encod", "--token-ids", "1"}, "unknown command \"encod\"; did you mean encode?; see"},
      {{"attend"}, "expected one of --input, --values, --generate or --token-ids; got none"},
      {{"attend", "--layer", "-1", "--values", "1"},
       "--layer: expected an integer of at least 0; got \"-1\"; see attendant-client attend "
       "--help"},
      {{"attend", "--stage", "half", "--values", "1"},
       "--stage: expected one of context, projected, block; got \"half\""},
      {{"attend", "--values", "1", "--generate", "1x1x1"},
       "--generate: cannot be combined with --values"},
      {{"attend", "--values", "1;2,3"},
       "--values: expected rows of one length; got rows of 1 and of 2 values"},
      {{"attend", "--input", "/nowhere.npy"}, "--input: /nowhere.npy: no such file"},
      {{"attend", "--generate", "0x1x1"},
       "--generate: expected a shape such as 2x5x768; got \"0x1x1\""},
      {{"attend", "--generate", "99999x99999x99999"}, "exceeds the 2 GiB"},
      {{"attend", "--values", "1", "--mask", "m.bin"}, "--mask: m.bin: expected FILE.npy"},
      {{"attend", "--values", "1", "--bias", "/nowhere.npy"}, "--bias: /nowhere.npy"},
      {{"attend", "--values", "1", "--output", "x.txt"}, "x.txt: expected a name ending in"},
      {{"attend", "--values", "1", "--output", "x.npy", "--probabilities"},
       "expected one tensor for .npy"},
      {{"attend", "--values", "1", "--wire-dtype", "float8"}, "--wire-dtype: expected one of"},
      {{"attend", "--values", "1", "--deadline", "soon"},
       "--deadline: expected a duration of at least 0, such as"},
      {{"attend", "--values", "1", "--deadline=-1s"}, "got \"-1s\""},
      {{"encode", "--values", "1", "--token-ids", "1"},
       "--token-ids: cannot be combined with hidden states"},
      {{"encode", "--token-ids", "1,x"}, "--token-ids"},
      {{"encode", "--token-ids", "1,2,3;1", "--lengths", "2,2"},
       "--token-ids: expected rows of lengths 2,2; got rows of lengths 3,1"},
      {{"encode", "--token-ids", "1,2,3;1", "--token-type-ids", "0;0,1,1"},
       "--token-type-ids: expected rows of lengths 3,1; got rows of lengths 1,3"},
      {{"encode", "--token-ids", "1,2,3;1", "--position-ids", "0;0,1,2"},
       "--position-ids: expected rows of lengths 3,1; got rows of lengths 1,3"},
      {{"attend", "--values", "1;2;3", "--mask", "1,1;1"},
       "--mask: expected rows of one length; got rows of lengths 2,1"},
      {{"encode", "--token-ids", "1", "--features"},
       "--features: requires --input, --values or --generate"},
      {{"encode", "--token-ids", "1", "--layers", "3"},
       "--layers: expected FIRST:COUNT, such as 0:6; got \"3\""},
      {{"encode", "--token-ids", "1", "--pooled", "median"}, "--pooled: expected one of model,"},
      {{"encode", "--token-ids", "1", "--truncate", "middle"},
       "expected one of right, left, none; got"},
      {{"encode", "--token-ids", "1", "--chunk", "0"},
       "--chunk: expected an integer of at least 1"},
      {{"encode", "--token-ids", "1;2", "--chunk", "1"},
       "--chunk: expected one sequence, with one row for each token; got [2, 1]"},
      {{"encode", "--token-ids", "1,2", "--position-ids", "1", "--chunk", "1"},
       "--chunk: expected one sequence, with one row for each token; got [1, 1]"},
      {{"encode", "--token-ids", "1", "--pooled", "--chunk", "1"},
       "--chunk: cannot be combined with --mask, --lengths, --bias, --attention-layers, "
       "--query-rows, --pooled, --token-vectors, --sparse, --truncate and --sequence-first\n"},
      {{"encode", "--values", "1;2", "--sequence-first", "--chunk", "1"},
       "--chunk: cannot be combined with --mask, "},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = RunWith(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

TEST_F(CommandLineTest, EncodeSendsASequenceInParts) {
  // The fake server answers the last item first.
  const Outcome outcome =
      Run({"encode", "--values", "1,2;3,4;5,6", "--layers", "0:2", "--chunk", "2"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the server's response is not for the next chunk"));
  const std::vector<v1::EncodeStreamRequest> sent = server_.streamed();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_THAT(sent[0].request().hidden_states().shape(), ElementsAre(1, 2, 2));
  EXPECT_THAT(sent[1].request().hidden_states().shape(), ElementsAre(1, 1, 2));
  EXPECT_EQ(sent[0].first_token(), 0u);
  EXPECT_EQ(sent[1].first_token(), 2u);
  EXPECT_FALSE(sent[0].ends());
  EXPECT_TRUE(sent[1].ends());
  EXPECT_EQ(sent[0].sequence(), sent[1].sequence());
  EXPECT_EQ(sent[1].request().layers().count(), 2u);

  const json whole = RunJson({"encode", "--values", "1,2;3,4", "--chunk", "2"});
  EXPECT_EQ(whole["hidden_states"]["shape"], json({1, 2, 2}));
  EXPECT_EQ(whole["hidden_states"], RunJson({"encode", "--values", "1,2;3,4"})["hidden_states"]);
}

// The names of the commands, as the overview lists them.
std::vector<std::string> Commands() {
  std::vector<std::string> commands;
  bool in_list = false;
  const std::string help = RunWith({"--help"}).out;
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    if (line == "Texts") in_list = true;
    if (line == "Output") break;
    if (!in_list || !absl::StartsWith(line, "  ") || line[2] == ' ') continue;
    commands.emplace_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

TEST_F(CommandLineTest, HelpListsTheCommands) {
  EXPECT_THAT(Commands(),
              ElementsAre("embed", "rerank", "classify", "tokenize", "attend", "encode",
                          "put-memory", "drop-memory", "inspect", "explain", "models", "tokenizer",
                          "health", "service-config", "load-test", "load-report", "completion"));
}

TEST_F(CommandLineTest, EveryCommandHasAHelpThatPeopleCanRead) {
  for (const std::string& command : Commands()) {
    const Outcome outcome = RunWith({command, "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, StartsWith("Usage: attendant-client " + command + " "));
    for (const char* part :
         {"\nOutput\n", "  --json  ", "\nConnection\n", "  --address HOST:PORT",
          "(default: localhost:8001)", "  --deadline DURATION", "(default: 1m)", "  --tls-ca FILE",
          "  --tls-cert FILE", "  --tls-key FILE", "  --token-file FILE", "  --version",
          "  3  the server cannot be reached", "\nExample"}) {
      EXPECT_THAT(outcome.out, HasSubstr(part)) << command;
    }
    EXPECT_THAT(outcome.out, ContainsRegex("attendant-client " + command + "[^\n]*\n"));
    for (const char* innards : {"->", "ENUM", ":INT", ":TEXT", "Excludes", "Needs", "in {"}) {
      EXPECT_THAT(outcome.out, Not(HasSubstr(innards))) << command;
    }
    for (const absl::string_view line : absl::StrSplit(outcome.out, '\n')) {
      EXPECT_LE(line.size(), 80u) << command << ": " << line;
    }
    EXPECT_EQ(RunWith({"--help", command}).out, outcome.out);
    EXPECT_EQ(RunWith({command, "--nonsense", "-h"}).out, outcome.out);
  }
}

// The help of a command, without its line breaks.
std::string Unwrapped(const std::string& command) {
  const std::vector<std::string> words =
      absl::StrSplit(RunWith({command, "--help"}).out, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

TEST_F(CommandLineTest, HelpHasBoundsDefaultsAndRelations) {
  const std::string attend = Unwrapped("attend");
  for (const char* part : {" --model NAME Name of the model (default: the server's only one) ",
                           " --stage context|projected|block Stage to return",
                           "(default: context) ", "--values ROWS Hidden states, one row of numbers",
                           "\"1,0,1,0;0,2,0,2\" (not with --input) ",
                           "with their keys (at least 1; not with --head-mean) ",
                           "--memory-mask FILE|ROWS", "[B or 1, M] (requires --memory) ",
                           "--tls-key FILE Private key of the client certificate "
                           "(requires --tls-cert)"}) {
    EXPECT_THAT(attend, HasSubstr(part));
  }
  EXPECT_THAT(Unwrapped("inspect"), HasSubstr("queries (8..1024; default: 128) "));
  EXPECT_THAT(Unwrapped("put-memory"), HasSubstr("\"1,0,1,0;0,2,0,2\" (required) "));
  EXPECT_THAT(Unwrapped("put-memory"), StartsWith("Usage: attendant-client put-memory --memory "
                                                  "FILE|ROWS [FLAGS] "));
  EXPECT_THAT(Unwrapped("drop-memory"),
              StartsWith("Usage: attendant-client drop-memory HANDLE [FLAGS] "));
  EXPECT_THAT(Unwrapped("rerank"), StartsWith("Usage: attendant-client rerank QUERY [TEXT...] "));
  EXPECT_THAT(Unwrapped("load-report"), StartsWith("Usage: attendant-client load-report FILE... "));
  EXPECT_THAT(Unwrapped("models"), StartsWith("Usage: attendant-client models [NAME] [FLAGS] "));
  const std::string encode = Unwrapped("encode");
  EXPECT_THAT(encode, HasSubstr("models that support it (at least 1; not with --text) "));
  EXPECT_THAT(Unwrapped("inspect"), Not(HasSubstr("--chunk")));
  EXPECT_THAT(encode, HasSubstr(" --pooled [POOLING] Also"));
  EXPECT_THAT(encode, HasSubstr("(one of model, first-token, mean, max, mean-sqrt-len, "));
  EXPECT_THAT(encode, HasSubstr(" --truncate right|left|none Truncate texts and token ids to the "
                                "model's max_sequence_length "));
}

TEST_F(CommandLineTest, VersionIsThatOfTheProgram) {
  const Outcome outcome = RunWith({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, MatchesRegex("attendant-client 0\\.[0-9.]+\ngRPC [0-9.]+\n"));
}

TEST_F(CommandLineTest, MistakesAreDocumentsToo) {
  const Outcome outcome = RunWith({"--json", "modles"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(json::parse(outcome.out)["error"]["message"],
            "unknown command \"modles\"; did you mean models?; see attendant-client --help");
}

TEST_F(CommandLineTest, TakesAUrlAsItsAddress) {
  EXPECT_EQ(RunWith({"models", "--address", "http://" + server_.address()}).exit_code, 0);
  const Outcome outcome = RunWith({"models", "--address", "http://localhost"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("address: expected HOST:PORT, the server's gRPC port, without "
                                     "a path; got \"http://localhost\""));
}

// As on a full disk.
TEST_F(CommandLineTest, ReportsThatTheOutputCannotBeWritten) {
  const char* const argv[] = {"attendant-client", "service-config"};
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(RunCommandLine(2, argv, out, err), 2);
  EXPECT_EQ(err.str(), "attendant-client: stdout: cannot be written\n");
}

TEST_F(CommandLineTest, RefusesFilesThatAreNotPem) {
  const std::string certificate =
      ScratchFile("cert", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n");
  const std::string empty = ScratchFile("empty", "");
  const Outcome authorities = RunWith({"models", "--tls-ca", empty});
  EXPECT_EQ(authorities.exit_code, 2);
  EXPECT_THAT(authorities.err, HasSubstr(empty + ": expected a CERTIFICATE in PEM"));
  const Outcome own = RunWith({"models", "--tls-cert", certificate, "--tls-key", certificate});
  EXPECT_EQ(own.exit_code, 2);
  EXPECT_THAT(own.err, HasSubstr(certificate + ": expected a PRIVATE KEY in PEM"));
}

TEST_F(CommandLineTest, LeavesProxiesOutUnlessAsked) {
  ASSERT_EQ(setenv("http_proxy", ("http://" + DeadAddress()).c_str(), 1), 0);
  EXPECT_EQ(Run({"models"}).exit_code, 0);
  EXPECT_EQ(Run({"models", "--proxy", "--deadline", "10s"}).exit_code, 3);
  unsetenv("http_proxy");
}

}  // namespace command_line_test
}  // namespace attendant::client
