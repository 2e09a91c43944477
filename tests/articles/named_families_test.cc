// Tests of "Worked example": the article begins with the names of twelve relatives of BERT. Ten are
// served from a checkpoint, and two are refused with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "server/models/model_loading.h"
#include "server/settings/model_setting.h"
#include "tests/articles/article_server.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant::articles {
namespace named_families_test {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Checkpoint {
  std::string name;    // in the article
  std::string family;  // as GetModel returns it
  json config;
  std::vector<TestTensor> tensors;
};

// Returns tensors under BERT's names with a prefix, E wide with two heads.
Checkpoint BertFormat(const std::string& name, const std::string& model_type,
                      const std::string& prefix, int64_t width) {
  Checkpoint checkpoint = {name, model_type, json::parse(TinyBertConfig()), {}};
  checkpoint.config["model_type"] = model_type;
  checkpoint.config["hidden_size"] = width;
  checkpoint.config.erase("architectures");
  for (TestTensor tensor : TinyBertTensors(prefix)) {
    for (int64_t& size : tensor.shape) size = size == 4 ? width : size;
    checkpoint.tensors.push_back(MakeTensor(tensor.name, tensor.shape));
  }
  return checkpoint;
}

Checkpoint DistilBert() {
  Checkpoint checkpoint = {"DistilBERT",
                           "distilbert",
                           {{"model_type", "distilbert"},
                            {"dim", 4},
                            {"n_heads", 2},
                            {"n_layers", 2},
                            {"hidden_dim", 8},
                            {"activation", "gelu"},
                            {"vocab_size", 10},
                            {"max_position_embeddings", 6}},
                           {}};
  for (const TestTensor& tensor : TinyBertTensors("distilbert.")) {
    if (absl::StrContains(tensor.name, "token_type")) continue;
    std::string name =
        absl::StrReplaceAll(tensor.name, {{"encoder.", "transformer."},
                                          {"self.query", "q_lin"},
                                          {"self.key", "k_lin"},
                                          {"self.value", "v_lin"},
                                          {"attention.output.dense", "attention.out_lin"},
                                          {"attention.output.LayerNorm", "sa_layer_norm"},
                                          {"intermediate.dense", "ffn.lin1"},
                                          {"output.dense", "ffn.lin2"},
                                          {"output.LayerNorm", "output_layer_norm"}});
    checkpoint.tensors.push_back(MakeTensor(name, tensor.shape));
  }
  return checkpoint;
}

// Returns a family that has a loader of its own.
Checkpoint Tiny(const std::string& name, const std::string& family) {
  for (const TinyFamily& tiny : TinyFamilies()) {
    if (tiny.name == family) return {name, family, json::parse(tiny.config), TensorsOf(tiny)};
  }
  ADD_FAILURE() << family;
  return {};
}

// F51: each of them by its own name. TinyBERT's heads are 26 wide.
TEST(NamedFamilies, TenAreServedFromTheirCheckpoints) {
  Checkpoint camembert = BertFormat("CamemBERT", "roberta", "roberta.", 4);
  camembert.config["model_type"] = "camembert";
  const Checkpoint checkpoints[] = {BertFormat("BERT", "bert", "bert.", 4),
                                    BertFormat("SpanBERT", "bert", "bert.", 4),
                                    BertFormat("SciBERT", "bert", "bert.", 4),
                                    BertFormat("BioBERT", "bert", "", 4),
                                    BertFormat("TinyBERT", "bert", "bert.", 52),
                                    BertFormat("RoBERTa", "roberta", "roberta.", 4),
                                    camembert,
                                    DistilBert(),
                                    Tiny("ALBERT", "albert"),
                                    Tiny("MobileBERT", "mobilebert")};
  for (const Checkpoint& checkpoint : checkpoints) {
    SCOPED_TRACE(checkpoint.name);
    const TempFolder folder;
    folder.Write("config.json", checkpoint.config.dump());
    folder.Write("model.safetensors", MakeSafetensors(checkpoint.tensors));
    ArticleServer server(folder.path());
    const v1::GetModelResponse model = server.Model();
    EXPECT_EQ(model.family(), checkpoint.family);
    v1::EncodeRequest request, one_more;
    *request.mutable_token_ids() = IntegerTensor({1, 3}, {5, 3, 7});
    *one_more.mutable_token_ids() = IntegerTensor({1, 4}, {5, 3, 7, 2});
    *one_more.mutable_attention_mask() = IntegerTensor({1, 4}, {1, 1, 1, 0});
    const std::vector<float> answer = server.Encoded(request);
    ASSERT_EQ(answer.size(), 3u * model.layer().hidden_size());
    for (const float element : answer) EXPECT_TRUE(std::isfinite(element));
    EXPECT_EQ(server::Rows(server.Encoded(one_more), model.layer().hidden_size(), 0, 3), answer);
  }
}

// Returns the reason why a server does not start with BERT's own checkpoint if its config.json has
// these words.
std::string Refusal(const std::string& key, const json& value) {
  Checkpoint checkpoint = BertFormat("", "bert", "bert.", 4);
  checkpoint.config[key] = value;
  const TempFolder folder;
  folder.Write("config.json", checkpoint.config.dump());
  folder.Write("model.safetensors", MakeSafetensors(checkpoint.tensors));
  server::Settings settings;
  settings.models.push_back(*server::ParseModelSetting("m=" + folder.path()));
  return std::string(server::OpenModels(settings).status().message());
}

// F51: loaded as plain BERT, which their files would fit, they would give other answers.
TEST(NamedFamilies, SesameBertAndSemBertAreRefusedWithTheReason) {
  EXPECT_THAT(Refusal("architectures", {"SesameBertModel"}),
              AllOf(HasSubstr("SesameBERT weights the outputs of all layers"),
                    HasSubstr("research code without a checkpoint format")));
  EXPECT_THAT(Refusal("model_type", "sembert"),
              AllOf(HasSubstr("SemBERT combines an encoder with semantic roles"),
                    HasSubstr("research code without a checkpoint format")));
}

}  // namespace named_families_test
}  // namespace attendant::articles
