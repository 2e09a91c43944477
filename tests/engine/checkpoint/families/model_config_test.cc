#include "engine/checkpoint/families/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace model_config_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Refusal(const std::string& config) {
  TempFolder folder;
  folder.Write("config.json", config);
  const absl::Status status = ReadModelConfig(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << config;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.File("config.json") + ": "));
  return std::string(status.message());
}

// Returns the tiny config with one field changed.
std::string With(const std::string& key, const std::string& value) {
  Json config = Json::parse(TinyBertConfig());
  config[key] = Json::parse(value);
  return config.dump();
}

ModelDescription Read(const std::string& config) {
  TempFolder folder;
  folder.Write("config.json", config);
  const absl::StatusOr<ModelConfig> read = ReadModelConfig(folder.path());
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? read->description : ModelDescription();
}

TEST(ModelConfig, W13RefusesAxesOutOfBounds) {
  EXPECT_THAT(Refusal(With("num_hidden_layers", "0")),
              HasSubstr("num_hidden_layers: expected an integer in 1..1024; got 0"));
  EXPECT_THAT(Refusal(With("num_hidden_layers", "1025")), HasSubstr("got 1025"));
  EXPECT_THAT(Refusal(With("hidden_size", "65537")),
              HasSubstr("hidden_size: expected an integer in 1..65536; got 65537"));
  EXPECT_THAT(Refusal(With("hidden_size", "-4")), HasSubstr("got -4"));
  EXPECT_THAT(Refusal(With("hidden_size", "4.0")), HasSubstr("got 4.0"));
  EXPECT_THAT(Refusal(With("hidden_size", "\"4\"")), HasSubstr("got '4'"));
  EXPECT_THAT(Refusal(With("num_attention_heads", "5")),
              HasSubstr("num_attention_heads: expected an integer in 1..4; got 5"));
  EXPECT_THAT(Refusal(With("num_attention_heads", "0")), HasSubstr("got 0"));
  EXPECT_THAT(Refusal(With("intermediate_size", "0")), HasSubstr("intermediate_size: expected"));
  EXPECT_THAT(Refusal(With("vocab_size", "99999999999")), HasSubstr("vocab_size: expected"));
  EXPECT_THAT(Refusal(With("max_position_embeddings", "0")),
              HasSubstr("max_position_embeddings: expected an integer in 1"));
  EXPECT_THAT(Refusal(With("type_vocab_size", "0")), HasSubstr("type_vocab_size: expected"));
  EXPECT_THAT(Refusal(With("layer_norm_eps", "0.02")),
              HasSubstr("layer_norm_eps: expected a number in 0..0.01; got 0.02"));
  EXPECT_THAT(Refusal(With("layer_norm_eps", "-1e-5")), HasSubstr("layer_norm_eps: expected"));
}

TEST(ModelConfig, W13RefusesHeadsThatDoNotFit) {
  EXPECT_THAT(Refusal(With("num_attention_heads", "3")),
              HasSubstr("expected heads of one width that make up the hidden size; got 3 heads "
                        "for 4"));
  EXPECT_THAT(Refusal(With("head_dim", "3")), HasSubstr("got 2 heads for 4 with head_dim 3"));
  EXPECT_EQ(Read(With("head_dim", "2")).layer.attention.key_width, 2);
}

// These models would load as plain BERT, and would answer something else than in their papers.
TEST(ModelConfig, RefusesResearchModelsByName) {
  EXPECT_THAT(Refusal(With("architectures", R"(["SesameBertForSequenceClassification"])")),
              HasSubstr("SesameBERT weights the outputs of all layers"));
  EXPECT_THAT(Refusal(With("model_type", "\"sesame-bert\"")), HasSubstr("SesameBERT"));
  EXPECT_THAT(Refusal(With("model_type", "\"sem_bert\"")),
              HasSubstr("SemBERT combines an encoder with semantic roles"));
}

TEST(ModelConfig, W13NamesTheFamilyOfAMisspellingAndAllForOthers) {
  EXPECT_THAT(Refusal(With("model_type", "\"robberta\"")),
              HasSubstr("model_type: expected a known family; got 'robberta'; the nearest is "
                        "roberta"));
  EXPECT_THAT(
      Refusal(With("model_type", "\"gpt2\"")),
      EndsWith("model_type: expected one of bert, roberta, xlm-roberta, camembert, "
               "electra, distilbert, albert, big_bird, mobilebert, mpnet, deberta-v2, t5, "
               "mt5, roformer, data2vec-text, ernie, rembert, esm, bart, mbart, marian, "
               "pegasus, m2m_100, modernbert, nomic_bert, gte, new, neobert, jina_embeddings_v3, "
               "qwen3, qwen2, llama, mistral, gemma3_text, eurobert, clip_vision_model, "
               "clip_text_model, siglip_vision_model, siglip_text_model, vit, deit, dinov2, "
               "dinov2_with_registers, whisper, wav2vec2, hubert; got 'gpt2'"));
  EXPECT_THAT(Refusal(R"({"architectures": ["GPT2Model"]})"), HasSubstr("got 'GPT2Model'"));
  EXPECT_THAT(Refusal("{}"), HasSubstr("hubert"));
  EXPECT_THAT(Refusal(R"({"architectures": ["BertGenerationEncoder"]})"),
              HasSubstr("got 'BertGenerationEncoder'"));
}

TEST(ModelConfig, W13RefusesUnknownActivationsAndBooleansAsText) {
  EXPECT_THAT(Refusal(With("hidden_act", "\"mish\"")),
              AllOf(HasSubstr("hidden_act: expected one of gelu, "), HasSubstr("got 'mish'")));
  EXPECT_THAT(Refusal(With("hidden_act", "3")), HasSubstr("hidden_act: expected one of"));
  EXPECT_THAT(Refusal(With("is_decoder", "\"false\"")),
              HasSubstr("is_decoder: expected true or false; got 'false'"));
}

TEST(ModelConfig, W13RefusesFilesThatAreTooMuch) {
  EXPECT_THAT(Refusal(std::string((1 << 20) + 1, ' ')),
              HasSubstr("expected at most 1048576 bytes; got 1048577"));
  EXPECT_THAT(Refusal(absl::StrCat("{\"a\":", std::string(32, '['), std::string(32, ']'), "}")),
              HasSubstr("nested deeper than 32"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("expected an object; got a list"));
}

TEST(ModelConfig, RefusesWhatWouldComputeSomethingElse) {
  EXPECT_THAT(Refusal(With("is_decoder", "true")), HasSubstr("is_decoder: expected false"));
  EXPECT_THAT(Refusal(With("add_cross_attention", "true")),
              HasSubstr("add_cross_attention: expected false"));
  EXPECT_THAT(Refusal(With("position_embedding_type", "\"relative_key\"")),
              HasSubstr("position_embedding_type: expected 'absolute'; got 'relative_key'"));
}

TEST(ModelConfig, RefusesRobertaWithoutPositionsBehindThePadding) {
  Json config = Json::parse(TinyBertConfig());
  config["model_type"] = "roberta";
  config["pad_token_id"] = 5;
  EXPECT_THAT(Refusal(config.dump()),
              HasSubstr("expected more positions than the 6 up to pad_token_id; got 6"));
}

TEST(ModelConfig, TellsAllProblemsAtOnce) {
  Json config = Json::parse(TinyBertConfig());
  config["hidden_size"] = 0;
  config.erase("vocab_size");
  config["hidden_act"] = "x";
  EXPECT_THAT(Refusal(config.dump()),
              AllOf(HasSubstr(" problems: "), HasSubstr("hidden_size: "),
                    HasSubstr("vocab_size: missing; expected an integer in 1..16777216"),
                    HasSubstr("hidden_act: ")));
}

TEST(ModelConfig, FillsInWhatTheFamilyFixes) {
  Json config = Json::parse(TinyBertConfig());
  for (const char* key : {"hidden_act", "layer_norm_eps", "type_vocab_size"}) config.erase(key);
  const ModelDescription description = Read(config.dump());
  EXPECT_EQ(description.layer.feed_forward.activation, Activation::kGelu);
  EXPECT_EQ(description.layer.norms.epsilon, 1e-12f);
  EXPECT_EQ(description.embeddings->token_types, 2);
}

TEST(ModelConfig, KnowsEveryActivation) {
  const std::vector<std::pair<std::string, Activation>> activations = {
      {"gelu", Activation::kGelu},          {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},          {"quick_gelu", Activation::kQuickGelu},
      {"silu", Activation::kSilu},          {"swish", Activation::kSilu},
      {"tanh", Activation::kTanh},          {"sigmoid", Activation::kSigmoid},
      {"linear", Activation::kIdentity},
  };
  for (const auto& [name, activation] : activations) {
    EXPECT_EQ(Read(With("hidden_act", "\"" + name + "\"")).layer.feed_forward.activation,
              activation)
        << name;
  }
}

TEST(ModelConfig, IsNotFoundWithoutAFile) {
  TempFolder folder;
  EXPECT_EQ(ReadModelConfig(folder.path()).status().code(), absl::StatusCode::kNotFound);
}

std::vector<std::string> Warnings(const std::string& config) {
  TempFolder folder;
  folder.Write("config.json", config);
  const absl::StatusOr<ModelConfig> read = ReadModelConfig(folder.path());
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? read->warnings : std::vector<std::string>();
}

TEST(ModelConfig, KeysWithoutEffectAreNamedUnlessTheyAreKnown) {
  Json config = Json::parse(TinyBertConfig());
  config["hidden_dropout_prob"] = 0.1;
  config["directionality"] = "bidi";
  config["_name_or_path"] = "somewhere";
  config["id2label"] = {{"0", "a"}};
  EXPECT_THAT(Warnings(config.dump()), IsEmpty());
  config["invented"] = 7;
  config["another"] = "text";
  config["absent"] = nullptr;
  config["off"] = false;
  config["without"] = Json::array();
  config["unsaid"] = "";
  EXPECT_THAT(Warnings(config.dump()),
              ElementsAre("config.json has keys that the family bert does not know and that have "
                          "no effect here: another, invented"));
}

TEST(ModelConfig, KeysThatNameAComputationAreRefused) {
  for (const char* key : {"rope_scaling", "rotary_emb_base", "alibi_slopes", "num_experts"}) {
    EXPECT_THAT(Refusal(With(key, "8")),
                HasSubstr(absl::StrCat(key, ": not supported by the family bert")));
    EXPECT_THAT(Warnings(With(key, "null")), IsEmpty());
  }
  EXPECT_THAT(Refusal(With("quantization_config", R"({"bits": 4})")),
              HasSubstr("quantization_config: not supported: quantized weights are not read"));
}

}  // namespace model_config_test
}  // namespace attendant
