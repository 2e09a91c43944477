// Tiny checkpoints of families in the format of BERT, and of the encoders in the format of BART.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace {

using Names = std::vector<WeightName>;

// A layer in the format of BERT, with the names of its norms.
Names WithBertLayers(Names names, const std::string& prefix, const std::string& attention_norm,
                     const std::string& feed_forward_norm) {
  const std::string layer = prefix + "encoder.layer.{i}.";
  for (const auto& [canonical, in_file] :
       {std::pair<std::string, std::string>{"query", "attention.self.query"},
        {"key", "attention.self.key"},
        {"value", "attention.self.value"},
        {"output", "attention.output.dense"},
        {"attention_norm", attention_norm},
        {"feed_forward_in", "intermediate.dense"},
        {"feed_forward_out", "output.dense"},
        {"feed_forward_norm", feed_forward_norm}}) {
    names.push_back({"layer.{i}." + canonical, layer + in_file + " +"});
  }
  return Expand(names, 2);
}

Names BertNames(Names names, const std::string& prefix) {
  names.push_back({"embeddings.word", prefix + "embeddings.word_embeddings.weight"});
  names.push_back({"embeddings.norm", prefix + "embeddings.LayerNorm +"});
  names.push_back({"embeddings.token_type", prefix + "embeddings.token_type_embeddings.weight"});
  return WithBertLayers(std::move(names), prefix, "attention.output.LayerNorm", "output.LayerNorm");
}

std::string BertConfig(const std::string& more) {
  return absl::StrCat("{", more, R"(, "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "vocab_size": 10,
            "max_position_embeddings": 16, "type_vocab_size": 2, "hidden_act": "gelu",
            "layer_norm_eps": 1e-12})");
}

TinyFamily RoFormer() {
  return {"roformer",
          BertConfig(R"("model_type": "roformer", "embedding_size": 6, "rotary_value": false)"),
          BertNames({{"embeddings.projection", "roformer.embeddings_project +"}}, "roformer."),
          {MakeTensor("roformer.encoder.embed_positions.weight", {16, 4})}};
}

TinyFamily Data2VecText() {
  return {"data2vec_text",
          BertConfig(R"("model_type": "data2vec-text", "pad_token_id": 1)"),
          BertNames({{"embeddings.position", "data2vec_text.embeddings.position_embeddings.weight"},
                     {"pooling.dense", "data2vec_text.pooler.dense +"}},
                    "data2vec_text."),
          {}};
}

// jina-reranker-v2, as its authors publish it.
TinyFamily JinaReranker() {
  const std::string layer = "roberta.encoder.layers.{i}.";
  return {"jina_reranker",
          BertConfig(R"("model_type": "xlm-roberta", "pad_token_id": 1, "use_flash_attn": true)"),
          Expand({{"embeddings.word", "roberta.embeddings.word_embeddings.weight"},
                  {"embeddings.position", "roberta.embeddings.position_embeddings.weight"},
                  {"embeddings.token_type", "roberta.embeddings.token_type_embeddings.weight"},
                  {"embeddings.norm", "roberta.emb_ln +"},
                  {"layer.{i}.query", layer + "mixer.Wqkv +", 0, 3},
                  {"layer.{i}.key", layer + "mixer.Wqkv +", 1, 3},
                  {"layer.{i}.value", layer + "mixer.Wqkv +", 2, 3},
                  {"layer.{i}.output", layer + "mixer.out_proj +"},
                  {"layer.{i}.attention_norm", layer + "norm1 +"},
                  {"layer.{i}.feed_forward_in", layer + "mlp.fc1 +"},
                  {"layer.{i}.feed_forward_out", layer + "mlp.fc2 +"},
                  {"layer.{i}.feed_forward_norm", layer + "norm2 +"}},
                 2),
          {}};
}

TinyFamily Ernie() {
  return {"ernie",
          BertConfig(R"("model_type": "ernie", "use_task_id": true, "task_type_vocab_size": 3)"),
          BertNames({{"embeddings.position", "ernie.embeddings.position_embeddings.weight"},
                     {"embeddings.task_type", "ernie.embeddings.task_type_embeddings.weight"},
                     {"pooling.dense", "ernie.pooler.dense +"}},
                    "ernie."),
          {}};
}

TinyFamily RemBert() {
  return {"rembert",
          BertConfig(R"("model_type": "rembert", "input_embedding_size": 6,
                        "output_embedding_size": 14)"),
          BertNames({{"embeddings.position", "embeddings.position_embeddings.weight"},
                     {"embeddings.projection", "encoder.embedding_hidden_mapping_in +"},
                     {"pooling.dense", "pooler.dense +"}},
                    ""),
          {}};
}

TinyFamily Esm(bool norm_before) {
  Names names = {{"embeddings.word", "esm.embeddings.word_embeddings.weight"},
                 {"exit_norm", "esm.encoder.emb_layer_norm_after +"}};
  if (norm_before) names.push_back({"embeddings.norm", "esm.embeddings.layer_norm +"});
  const std::string keys = R"("model_type": "esm", "position_embedding_type": "rotary",
      "token_dropout": true, "mask_token_id": 7, "pad_token_id": 1, "is_folding_model": false,
      "vocab_list": null, "emb_layer_norm_before": )";
  return {norm_before ? "esm_norm_before" : "esm",
          BertConfig(keys + (norm_before ? "true" : "false")),
          WithBertLayers(names, "esm.", "attention.LayerNorm", "LayerNorm"),
          {MakeTensor("esm.contact_head.regression.weight", {1, 4}),
           MakeTensor("esm.embeddings.position_embeddings.weight", {16, 8})}};
}

// The config of a family in the format of BART, and the names of its tensors without those of
// embeddings and of the last norm.
TinyFamily LikeBart(const std::string& type, const std::string& keys, Names names,
                    const std::string& prefix) {
  const std::string layer = prefix + "encoder.layers.{i}.";
  for (const auto& [canonical, in_file] :
       {std::pair<std::string, std::string>{"query", "self_attn.q_proj"},
        {"key", "self_attn.k_proj"},
        {"value", "self_attn.v_proj"},
        {"output", "self_attn.out_proj"},
        {"attention_norm", "self_attn_layer_norm"},
        {"feed_forward_in", "fc1"},
        {"feed_forward_out", "fc2"},
        {"feed_forward_norm", "final_layer_norm"}}) {
    names.push_back({"layer.{i}." + canonical, layer + in_file + " +"});
  }
  return {type,
          absl::StrCat(R"({"model_type": ")", type, R"(", "d_model": 8, "encoder_layers": 2,
            "encoder_attention_heads": 2, "encoder_ffn_dim": 12, "decoder_layers": 3,
            "vocab_size": 10, "max_position_embeddings": 16, "is_encoder_decoder": true)",
                       keys, "}"),
          Expand(names, 2),
          {MakeTensor(prefix + "decoder.embed_positions.weight", {16, 8})}};
}

TinyFamily Bart() {
  return LikeBart("bart", R"(, "activation_function": "gelu", "scale_embedding": false)",
                  {{"embeddings.word", "model.shared.weight"},
                   {"embeddings.position", "model.encoder.embed_positions.weight"},
                   {"embeddings.norm", "model.encoder.layernorm_embedding +"}},
                  "model.");
}

TinyFamily MBart() {
  return LikeBart("mbart", R"(, "activation_function": "relu", "scale_embedding": true)",
                  {{"embeddings.word", "shared.weight"},
                   {"embeddings.position", "encoder.embed_positions.weight"},
                   {"embeddings.norm", "encoder.layernorm_embedding +"},
                   {"exit_norm", "encoder.layer_norm +"}},
                  "");
}

TinyFamily Marian() {
  TinyFamily family =
      LikeBart("marian", R"(, "activation_function": "swish", "static_position_embeddings": true)",
               {{"embeddings.word", "model.shared.weight"}}, "model.");
  family.computed = "embeddings.position";
  return family;
}

TinyFamily Pegasus() {
  TinyFamily family =
      LikeBart("pegasus", R"(, "activation_function": "relu", "scale_embedding": true)",
               {{"embeddings.word", "shared.weight"},
                {"embeddings.position", "encoder.embed_positions.weight"},
                {"exit_norm", "encoder.layer_norm +"}},
               "");
  family.computed = "embeddings.position";
  return family;
}

TinyFamily M2M100() {
  TinyFamily family = LikeBart(
      "m2m_100", R"(, "activation_function": "relu", "pad_token_id": 1)",
      {{"embeddings.word", "model.shared.weight"}, {"exit_norm", "model.encoder.layer_norm +"}},
      "model.");
  family.computed = "embeddings.position";
  return family;
}

}  // namespace

std::vector<TinyFamily> TinyBertFamilies() {
  return {RoFormer(), Data2VecText(), JinaReranker(), Ernie(),  RemBert(), Esm(false),
          Esm(true),  Bart(),         MBart(),        Marian(), Pegasus(), M2M100()};
}

}  // namespace attendant
