// Tests of the client library and attendant-client against the real server.
#include "client/client.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/integration/server_process.h"

namespace attendant::client {
namespace client_test {

using server::ReadyServer;
using ::testing::HasSubstr;

EncodeRequest Item(int64_t token) {
  EncodeRequest request;
  request.model = std::string("t");
  request.token_ids = Int64Tensor({1, 2}, {token, 1});
  return request;
}

TEST(ClientAndServerTest, AStreamAnswersEveryItemUnderItsIdABadOneToo) {
  constexpr int64_t kItems = 40;
  constexpr int64_t kBad = 7;
  ReadyServer server({"--model=t=synthetic:tiny"});
  const Client client = Client::Connect(server.address());
  const std::unique_ptr<EncodeStream> stream = client.OpenEncodeStream();
  for (int64_t id = 0; id < kItems; ++id) {
    ASSERT_TRUE(stream->Write(id, Item(id == kBad ? 1000 : id)));
  }
  stream->WritesDone();
  std::map<uint64_t, absl::StatusOr<EncodeResult>> answers;
  while (std::optional<EncodeStream::Answer> answer = stream->Read()) {
    EXPECT_TRUE(answers.emplace(answer->id, std::move(answer->result)).second);
  }
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(answers.size(), static_cast<size_t>(kItems));
  for (const auto& [id, answer] : answers) {
    if (id == kBad) {
      EXPECT_EQ(answer.status(),
                absl::InvalidArgumentError("token_ids[0, 0]: expected 0..99; got 1000"));
      continue;
    }
    const absl::StatusOr<EncodeResult> alone = client.Encode(Item(static_cast<int64_t>(id)));
    ASSERT_TRUE(answer.ok() && alone.ok()) << answer.status() << alone.status();
    EXPECT_EQ(answer->hidden_states->data, alone->hidden_states->data);
  }
}

// 70 ids for a model of 64 positions.
TEST(ClientAndServerTest, EncodeCutsWhatIsTooLongIfAsked) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  std::string ids = "1";
  for (int i = 1; i < 70; ++i) ids += ",1";
  std::vector<std::string> command = {"encode",      "--address", server.address(),
                                      "--token-ids", ids,         "--json"};
  const Outcome refused = RunWith(command);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("at most 64 positions in a sequence; got 70"));

  command.insert(command.end(), {"--truncate", "left"});
  const Outcome cut = RunWith(command);
  ASSERT_EQ(cut.exit_code, 0) << cut.err;
  const auto answer = nlohmann::json::parse(cut.out);
  EXPECT_EQ(answer["execution"]["truncated_tokens"], 6);
  EXPECT_EQ(answer["execution"]["tokens"], 64);
}

// The worked example as its article computes it on paper, with probabilities of one decimal.
TEST(ClientAndServerTest, ExplainsTheWorkedExampleAsOnPaper) {
  ReadyServer server({"--model=w=worked-example"});
  std::vector<std::string> command = {
      "explain", "--address", server.address(), "--values", "1,0,1,0;0,2,0,2;1,1,1,1",
      "--round", "1"};
  const Outcome paper = RunWith(command);
  ASSERT_EQ(paper.exit_code, 0) << paper.err;
  EXPECT_EQ(paper.out,
            "sequence 0, head 0\n"
            "  query 0: probabilities [0, 0.5, 0.5]\n"
            "    0 x value 0 [1, 2, 3] = [0, 0, 0]\n"
            "    0.5 x value 1 [2, 8, 0] = [1, 4, 0]\n"
            "    0.5 x value 2 [2, 6, 3] = [1, 3, 1.5]\n"
            "    sum: [2, 7, 1.5]\n"
            "  query 1: probabilities [0, 1, 0]\n"
            "    0 x value 0 [1, 2, 3] = [0, 0, 0]\n"
            "    1 x value 1 [2, 8, 0] = [2, 8, 0]\n"
            "    0 x value 2 [2, 6, 3] = [0, 0, 0]\n"
            "    sum: [2, 8, 0]\n"
            "  query 2: probabilities [0, 0.9, 0.1]\n"
            "    0 x value 0 [1, 2, 3] = [0, 0, 0]\n"
            "    0.9 x value 1 [2, 8, 0] = [1.8, 7.2, 0]\n"
            "    0.1 x value 2 [2, 6, 3] = [0.2, 0.6, 0.3]\n"
            "    sum: [2, 7.8, 0.3]\n");
  command.push_back("--json");
  const Outcome json = RunWith(command);
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto head = nlohmann::json::parse(json.out)["heads"][0];
  const double values[3][3] = {{1, 2, 3}, {2, 8, 0}, {2, 6, 3}};
  for (int token = 0; token < 3; ++token) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(head["values"][token][i].get<double>(), values[token][i], 1e-6);
    }
  }
}

// Serves one of torch's layers with fast weights, from a folder.
void WriteFastLayer(const TempFolder& folder) {
  folder.Write("attendant.json",
               R"({"module": "nn.TransformerEncoderLayer", "file": "w.safetensors",
                   "num_heads": 3, "norm_first": true, "activation": "gelu",
                   "layer_norm_eps": 1e-5, "attention": "causal_linear", "score_scale": 0.05})");
  const std::pair<const char*, std::vector<int64_t>> shapes[] = {
      {"self_attn.in_proj_weight", {63, 21}},
      {"self_attn.out_proj.weight", {21, 21}},
      {"linear1.weight", {10, 21}},
      {"linear2.weight", {21, 10}},
      {"norm1.weight", {21}},
      {"norm2.weight", {21}}};
  std::vector<TestTensor> tensors;
  for (const auto& [name, shape] : shapes) tensors.push_back(MakeTensor(name, shape));
  folder.Write("w.safetensors", MakeSafetensors(tensors));
}

TEST(ClientAndServerTest, ASequenceInPartsIsAnsweredAsAWhole) {
  const TempFolder folder;
  WriteFastLayer(folder);
  ReadyServer server({"--model=f=" + folder.path(), "--model=t=synthetic:tiny"});
  const auto encode = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {
        "encode", "--address",  server.address(), "--model",        "f",
        "--json", "--generate", "1x13",           "--intermediate", "0"};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = RunWith(command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const nlohmann::json whole = encode({});
  EXPECT_EQ(whole["hidden_states"]["shape"], nlohmann::json({1, 13, 21}));
  for (const char* tokens : {"1", "5", "13", "9223372036854775807"}) {
    const nlohmann::json parts = encode({"--chunk", tokens});
    EXPECT_EQ(parts["hidden_states"], whole["hidden_states"]) << tokens;
    EXPECT_EQ(parts["intermediate.0"], whole["intermediate.0"]) << tokens;
    EXPECT_EQ(parts["execution"]["tokens"], 13);
  }
  const Outcome refused = RunWith({"encode", "--address", server.address(), "--model", "t",
                                   "--token-ids", "1,2,3", "--chunk", "2"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("sequence: not supported by model \"t\": its attention is "
                                     "softmax, not causal_linear"));
  const Outcome told = RunWith({"models", "f", "--address", server.address()});
  EXPECT_THAT(told.out, HasSubstr("sequences in chunks      over EncodeStream, "));
}

}  // namespace client_test
}  // namespace attendant::client
