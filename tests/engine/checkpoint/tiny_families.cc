#include "tests/engine/checkpoint/tiny_families.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/checkpoint/families/model_config.h"
#include "engine/model/weight_source.h"

namespace attendant {

std::vector<WeightName> Expand(const std::vector<WeightName>& patterns, int layers) {
  std::vector<WeightName> names;
  for (const WeightName& pattern : patterns) {
    const int repeats = absl::StrContains(pattern.canonical, "{i}") ? layers : 1;
    for (int i = 0; i < repeats; ++i) {
      WeightName name = pattern;
      const bool has_bias = absl::EndsWith(name.in_file, " +");
      name.canonical = absl::StrReplaceAll(name.canonical, {{"{i}", absl::StrCat(i)}});
      name.in_file = absl::StrReplaceAll(name.in_file, {{"{i}", absl::StrCat(i)}, {" +", ""}});
      const auto with = [&](const char* suffix) {
        return WeightName{name.canonical + suffix, name.in_file + suffix, name.index, name.count,
                          name.layout};
      };
      const bool is_tensor =
          absl::StrContains(name.canonical, "embeddings.word") ||
          absl::StrContains(name.canonical, "embeddings.pos") ||
          absl::StrContains(name.canonical, "embeddings.token") ||
          absl::StrContains(name.canonical, "embeddings.task") ||
          absl::StrContains(name.canonical, "scale") ||
          (absl::StartsWith(name.canonical, "front.") && name.canonical != "front.norm" &&
           name.canonical != "front.projection") ||
          name.canonical == "relative_positions" || name.canonical == "pooling.probe";
      names.push_back(is_tensor ? name : with(".weight"));
      if (has_bias) names.push_back(with(".bias"));
    }
  }
  return names;
}

namespace {

using Names = std::vector<WeightName>;

TinyFamily Albert() {
  const std::string layer = "encoder.albert_layer_groups.{i}.albert_layers.0.";
  return {"albert",
          R"({"model_type": "albert", "hidden_size": 8, "embedding_size": 6,
            "num_attention_heads": 2, "num_hidden_layers": 5, "num_hidden_groups": 2,
            "inner_group_num": 1, "intermediate_size": 12, "vocab_size": 10,
            "max_position_embeddings": 16, "type_vocab_size": 2, "hidden_act": "gelu_new",
            "layer_norm_eps": 1e-12})",
          Expand({{"embeddings.word", "embeddings.word_embeddings.weight"},
                  {"embeddings.position", "embeddings.position_embeddings.weight"},
                  {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
                  {"embeddings.norm", "embeddings.LayerNorm +"},
                  {"embeddings.projection", "encoder.embedding_hidden_mapping_in +"},
                  {"layer.{i}.query", layer + "attention.query +"},
                  {"layer.{i}.key", layer + "attention.key +"},
                  {"layer.{i}.value", layer + "attention.value +"},
                  {"layer.{i}.output", layer + "attention.dense +"},
                  {"layer.{i}.attention_norm", layer + "attention.LayerNorm +"},
                  {"layer.{i}.feed_forward_in", layer + "ffn +"},
                  {"layer.{i}.feed_forward_out", layer + "ffn_output +"},
                  {"layer.{i}.feed_forward_norm", layer + "full_layer_layer_norm +"},
                  {"pooling.dense", "pooler +"}},
                 2),
          {}};
}

TinyFamily MpNet() {
  const std::string layer = "encoder.layer.{i}.";
  return {"mpnet",
          R"({"model_type": "mpnet", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "vocab_size": 10,
            "max_position_embeddings": 16, "hidden_act": "gelu", "layer_norm_eps": 1e-5,
            "relative_attention_num_buckets": 32, "pad_token_id": 1})",
          Expand({{"embeddings.word", "embeddings.word_embeddings.weight"},
                  {"embeddings.position", "embeddings.position_embeddings.weight"},
                  {"embeddings.norm", "embeddings.LayerNorm +"},
                  {"relative_positions", "encoder.relative_attention_bias.weight"},
                  {"layer.{i}.query", layer + "attention.attn.q +"},
                  {"layer.{i}.key", layer + "attention.attn.k +"},
                  {"layer.{i}.value", layer + "attention.attn.v +"},
                  {"layer.{i}.output", layer + "attention.attn.o +"},
                  {"layer.{i}.attention_norm", layer + "attention.LayerNorm +"},
                  {"layer.{i}.feed_forward_in", layer + "intermediate.dense +"},
                  {"layer.{i}.feed_forward_out", layer + "output.dense +"},
                  {"layer.{i}.feed_forward_norm", layer + "output.LayerNorm +"},
                  {"pooling.dense", "pooler.dense +"}},
                 2),
          {}};
}

TinyFamily MobileBert() {
  const std::string layer = "mobilebert.encoder.layer.{i}.";
  Names names = {
      {"embeddings.word", "mobilebert.embeddings.word_embeddings.weight"},
      {"embeddings.position", "mobilebert.embeddings.position_embeddings.weight"},
      {"embeddings.token_type", "mobilebert.embeddings.token_type_embeddings.weight"},
      {"embeddings.norm", "mobilebert.embeddings.LayerNorm +"},
      {"embeddings.projection", "mobilebert.embeddings.embedding_transformation +"},
      {"layer.{i}.bottleneck_in", layer + "bottleneck.input.dense +"},
      {"layer.{i}.bottleneck_in_norm", layer + "bottleneck.input.LayerNorm +"},
      {"layer.{i}.bottleneck_attention", layer + "bottleneck.attention.dense +"},
      {"layer.{i}.bottleneck_attention_norm", layer + "bottleneck.attention.LayerNorm +"},
      {"layer.{i}.query", layer + "attention.self.query +"},
      {"layer.{i}.key", layer + "attention.self.key +"},
      {"layer.{i}.value", layer + "attention.self.value +"},
      {"layer.{i}.output", layer + "attention.output.dense +"},
      {"layer.{i}.attention_norm", layer + "attention.output.LayerNorm +"},
      {"layer.{i}.feed_forward_in", layer + "intermediate.dense +"},
      {"layer.{i}.feed_forward_out", layer + "output.dense +"},
      {"layer.{i}.feed_forward_norm", layer + "output.LayerNorm +"},
      {"layer.{i}.bottleneck_out", layer + "output.bottleneck.dense +"},
      {"layer.{i}.bottleneck_out_norm", layer + "output.bottleneck.LayerNorm +"},
      {"pooling.dense", "mobilebert.pooler.dense +"}};
  for (const std::string block : {"0", "1"}) {
    const std::string before = "layer.{i}.before." + block + ".", ffn = layer + "ffn." + block;
    names.push_back({before + "feed_forward_in", ffn + ".intermediate.dense +"});
    names.push_back({before + "feed_forward_out", ffn + ".output.dense +"});
    names.push_back({before + "feed_forward_norm", ffn + ".output.LayerNorm +"});
  }
  return {"mobilebert",
          R"({"model_type": "mobilebert", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "vocab_size": 10, "embedding_size": 5,
            "type_vocab_size": 2, "max_position_embeddings": 16, "hidden_act": "relu",
            "layer_norm_eps": 1e-12, "trigram_input": true, "use_bottleneck": true,
            "intra_bottleneck_size": 6, "use_bottleneck_attention": false,
            "key_query_shared_bottleneck": true, "num_feedforward_networks": 3,
            "normalization_type": "no_norm"})",
          Expand(names, 2),
          {}};
}

TinyFamily MobileBertWithStatistics() {
  TinyFamily family = MobileBert();
  family.name = "mobilebert_layer_norm";
  family.config = absl::StrReplaceAll(family.config, {{"no_norm", "layer_norm"}});
  return family;
}

TinyFamily BigBird() {
  const std::string layer = "bert.encoder.layer.{i}.";
  return {"big_bird",
          R"({"model_type": "big_bird", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "vocab_size": 10, "type_vocab_size": 2,
            "max_position_embeddings": 64, "hidden_act": "gelu_new", "layer_norm_eps": 1e-12,
            "attention_type": "block_sparse", "block_size": 2, "num_random_blocks": 3,
            "use_bias": false, "rescale_embeddings": false})",
          Expand({{"embeddings.word", "bert.embeddings.word_embeddings.weight"},
                  {"embeddings.position", "bert.embeddings.position_embeddings.weight"},
                  {"embeddings.token_type", "bert.embeddings.token_type_embeddings.weight"},
                  {"embeddings.norm", "bert.embeddings.LayerNorm +"},
                  {"layer.{i}.query", layer + "attention.self.query"},
                  {"layer.{i}.key", layer + "attention.self.key"},
                  {"layer.{i}.value", layer + "attention.self.value"},
                  {"layer.{i}.output", layer + "attention.output.dense +"},
                  {"layer.{i}.attention_norm", layer + "attention.output.LayerNorm +"},
                  {"layer.{i}.feed_forward_in", layer + "intermediate.dense +"},
                  {"layer.{i}.feed_forward_out", layer + "output.dense +"},
                  {"layer.{i}.feed_forward_norm", layer + "output.LayerNorm +"},
                  {"pooling.dense", "bert.pooler +"}},
                 2),
          {}};
}

// Returns DeBERTa like the published models of version 3, or one that has projections of distances
// of its own, embeddings of another width and a table of positions.
TinyFamily DebertaV2(bool own_projections) {
  const std::string layer = "deberta.encoder.layer.{i}.";
  Names names = {{"embeddings.word", "deberta.embeddings.word_embeddings.weight"},
                 {"embeddings.norm", "deberta.embeddings.LayerNorm +"},
                 {"relative_positions", "deberta.encoder.rel_embeddings.weight"},
                 {"layer.{i}.query", layer + "attention.self.query_proj +"},
                 {"layer.{i}.key", layer + "attention.self.key_proj +"},
                 {"layer.{i}.value", layer + "attention.self.value_proj +"},
                 {"layer.{i}.output", layer + "attention.output.dense +"},
                 {"layer.{i}.attention_norm", layer + "attention.output.LayerNorm +"},
                 {"layer.{i}.feed_forward_in", layer + "intermediate.dense +"},
                 {"layer.{i}.feed_forward_out", layer + "output.dense +"},
                 {"layer.{i}.feed_forward_norm", layer + "output.LayerNorm +"}};
  if (own_projections) {
    names.push_back({"embeddings.position", "deberta.embeddings.position_embeddings.weight"});
    names.push_back({"embeddings.token_type", "deberta.embeddings.token_type_embeddings.weight"});
    names.push_back({"embeddings.projection", "deberta.embeddings.embed_proj"});
    names.push_back({"layer.{i}.position_key", layer + "attention.self.pos_key_proj +"});
    names.push_back({"layer.{i}.position_query", layer + "attention.self.pos_query_proj +"});
  } else {
    names.push_back({"relative_positions_norm", "deberta.encoder.LayerNorm +"});
  }
  return {own_projections ? "deberta_own_projections" : "deberta",
          absl::StrCat(R"({"model_type": "deberta-v2", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "vocab_size": 10, "hidden_act": "gelu",
            "max_position_embeddings": 16, "layer_norm_eps": 1e-7, "relative_attention": true,
            "max_relative_positions": -1, )",
                       own_projections ? R"("position_buckets": -1, "pos_att_type": ["c2p", "p2c"],
            "embedding_size": 6, "type_vocab_size": 2, "position_biased_input": true})"
                                       : R"("position_buckets": 4, "pos_att_type": "p2c|c2p",
            "share_att_key": true, "norm_rel_ebd": "layer_norm", "type_vocab_size": 0,
            "position_biased_input": false})"),
          Expand(names, 2),
          {MakeTensor("mask_predictions.dense.weight", {8, 8})}};
}

TinyFamily DebertaV2WithConvolution() {
  TinyFamily family = DebertaV2(false);
  family.name = "deberta_convolution";
  family.config =
      absl::StrReplaceAll(family.config, {{"\"hidden_act\": \"gelu\"",
                                           "\"hidden_act\": \"gelu\", \"conv_kernel_size\": 5, "
                                           "\"conv_groups\": 2, \"conv_act\": \"gelu\""}});
  const Names names = Expand({{"layer.0.convolution", "deberta.encoder.conv.conv +"},
                              {"layer.0.convolution_norm", "deberta.encoder.conv.LayerNorm +"}},
                             1);
  family.weights.insert(family.weights.end(), names.begin(), names.end());
  return family;
}

TinyFamily T5(bool gated) {
  const std::string layer = "encoder.block.{i}.layer.";
  Names names = {{"embeddings.word", "shared.weight"},
                 {"relative_positions",
                  "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
                 {"layer.{i}.query", layer + "0.SelfAttention.q"},
                 {"layer.{i}.key", layer + "0.SelfAttention.k"},
                 {"layer.{i}.value", layer + "0.SelfAttention.v"},
                 {"layer.{i}.output", layer + "0.SelfAttention.o"},
                 {"layer.{i}.attention_norm", layer + "0.layer_norm"},
                 {"layer.{i}.feed_forward_in",
                  layer + (gated ? "1.DenseReluDense.wi_1" : "1.DenseReluDense.wi")},
                 {"layer.{i}.feed_forward_out", layer + "1.DenseReluDense.wo"},
                 {"layer.{i}.feed_forward_norm", layer + "1.layer_norm"},
                 {"exit_norm", "encoder.final_layer_norm"}};
  if (gated) names.push_back({"layer.{i}.feed_forward_gate", layer + "1.DenseReluDense.wi_0"});
  return {gated ? "t5_gated" : "t5",
          absl::StrCat(R"({"model_type": "t5", "d_model": 8, "d_kv": 3, "num_heads": 2,
            "num_layers": 2, "d_ff": 12, "vocab_size": 10, "layer_norm_epsilon": 1e-6,
            "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
            "feed_forward_proj": ")",
                       gated ? "gated-gelu" : "relu", "\"}"),
          Expand(names, 2),
          {MakeTensor("decoder.block.0.layer.0.SelfAttention.q.weight", {6, 8}),
           MakeTensor("lm_head.weight", {10, 8})}};
}

TinyFamily Vit() {
  const std::string layer = "vit.encoder.layer.{i}.";
  return {"vit",
          R"({"model_type": "vit", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "hidden_act": "gelu",
            "layer_norm_eps": 1e-12, "image_size": 8, "patch_size": 4, "qkv_bias": true})",
          Expand({{"front.class", "vit.embeddings.cls_token"},
                  {"front.positions", "vit.embeddings.position_embeddings"},
                  {"layer.{i}.query", layer + "attention.attention.query +"},
                  {"layer.{i}.key", layer + "attention.attention.key +"},
                  {"layer.{i}.value", layer + "attention.attention.value +"},
                  {"layer.{i}.output", layer + "attention.output.dense +"},
                  {"layer.{i}.attention_norm", layer + "layernorm_before +"},
                  {"layer.{i}.feed_forward_in", layer + "intermediate.dense +"},
                  {"layer.{i}.feed_forward_out", layer + "output.dense +"},
                  {"layer.{i}.feed_forward_norm", layer + "layernorm_after +"},
                  {"exit_norm", "vit.layernorm +"}},
                 2),
          {MakeTensor("vit.embeddings.patch_embeddings.projection.weight", {8, 3, 4, 4}),
           MakeTensor("classifier.weight", {3, 8})}};
}

// The layers of a tower, with what comes before and after them.
Names TowerNames(const std::string& tower, Names others) {
  const std::string layer = tower + "encoder.layers.{i}.";
  Names names = {{"layer.{i}.query", layer + "self_attn.q_proj +"},
                 {"layer.{i}.key", layer + "self_attn.k_proj +"},
                 {"layer.{i}.value", layer + "self_attn.v_proj +"},
                 {"layer.{i}.output", layer + "self_attn.out_proj +"},
                 {"layer.{i}.attention_norm", layer + "layer_norm1 +"},
                 {"layer.{i}.feed_forward_in", layer + "mlp.fc1 +"},
                 {"layer.{i}.feed_forward_out", layer + "mlp.fc2 +"},
                 {"layer.{i}.feed_forward_norm", layer + "layer_norm2 +"}};
  names.insert(names.end(), others.begin(), others.end());
  return Expand(names, 2);
}

constexpr char kTowerSizes[] =
    R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2,
       "intermediate_size": 12, )";

TinyFamily ClipVision() {
  const std::string tower = "vision_model.";
  return {"clip_vision",
          absl::StrCat(R"({"model_type": "clip_vision_model", )", kTowerSizes,
                       R"("hidden_act": "quick_gelu",
            "layer_norm_eps": 1e-5, "image_size": 6, "patch_size": 3, "projection_dim": 8})"),
          TowerNames(tower, {{"front.projection", tower + "embeddings.patch_embedding"},
                             {"front.class", tower + "embeddings.class_embedding"},
                             {"front.positions", tower + "embeddings.position_embedding.weight"},
                             {"front.norm", tower + "pre_layrnorm +"},
                             {"exit_norm", tower + "post_layernorm +"},
                             {"pooling.dense", "visual_projection"}}),
          {}};
}

TinyFamily ClipText() {
  const std::string tower = "text_model.";
  return {
      "clip_text",
      absl::StrCat(R"({"model_type": "clip_text_model", )", kTowerSizes,
                   R"("hidden_act": "quick_gelu",
            "layer_norm_eps": 1e-5, "vocab_size": 10, "max_position_embeddings": 16,
            "projection_dim": 8, "eos_token_id": 9})"),
      TowerNames(tower, {{"embeddings.word", tower + "embeddings.token_embedding.weight"},
                         {"embeddings.position", tower + "embeddings.position_embedding.weight"},
                         {"exit_norm", tower + "final_layer_norm +"},
                         {"pooling.dense", "text_projection"}}),
      {}};
}

TinyFamily SiglipVision() {
  const std::string tower = "vision_model.", head = tower + "head.";
  Names names =
      TowerNames(tower, {{"front.projection", tower + "embeddings.patch_embedding +"},
                         {"front.positions", tower + "embeddings.position_embedding.weight"},
                         {"exit_norm", tower + "post_layernorm +"},
                         {"pooling.probe", head + "probe"},
                         {"pooling.dense", head + "attention.out_proj +"},
                         {"pooling.block_norm", head + "layernorm +"},
                         {"pooling.block_in", head + "mlp.fc1 +"},
                         {"pooling.block_out", head + "mlp.fc2 +"}});
  int64_t index = 0;
  for (const std::string projection : {"pooling.query", "pooling.key", "pooling.value"}) {
    names.push_back({projection + ".weight", head + "attention.in_proj_weight", index, 3});
    names.push_back({projection + ".bias", head + "attention.in_proj_bias", index, 3});
    ++index;
  }
  return {"siglip_vision",
          absl::StrCat(R"({"model_type": "siglip_vision_model", )", kTowerSizes,
                       R"("hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": 1e-6, "image_size": 9, "patch_size": 3})"),
          names,
          {}};
}

TinyFamily SiglipText() {
  const std::string tower = "text_model.";
  return {
      "siglip_text",
      absl::StrCat(R"({"model_type": "siglip_text_model", )", kTowerSizes,
                   R"("hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": 1e-6, "vocab_size": 10, "max_position_embeddings": 16,
            "projection_size": 8})"),
      TowerNames(tower, {{"embeddings.word", tower + "embeddings.token_embedding.weight"},
                         {"embeddings.position", tower + "embeddings.position_embedding.weight"},
                         {"exit_norm", tower + "final_layer_norm +"},
                         {"pooling.dense", tower + "head +"}}),
      {}};
}

TinyFamily Dinov2(bool swiglu) {
  const std::string layer = "encoder.layer.{i}.";
  Names names = {{"layer.{i}.query", layer + "attention.attention.query"},
                 {"layer.{i}.key", layer + "attention.attention.key"},
                 {"layer.{i}.value", layer + "attention.attention.value"},
                 {"layer.{i}.output", layer + "attention.output.dense +"},
                 {"layer.{i}.attention_norm", layer + "norm1 +"},
                 {"layer.{i}.attention_scale", layer + "layer_scale1.lambda1"},
                 {"layer.{i}.feed_forward_norm", layer + "norm2 +"},
                 {"layer.{i}.feed_forward_scale", layer + "layer_scale2.lambda1"},
                 {"exit_norm", "layernorm +"}};
  if (swiglu) {
    names.push_back({"layer.{i}.feed_forward_gate", layer + "mlp.weights_in +", 0, 2});
    names.push_back({"layer.{i}.feed_forward_in", layer + "mlp.weights_in +", 1, 2});
    names.push_back({"layer.{i}.feed_forward_out", layer + "mlp.weights_out +"});
  } else {
    names.push_back({"layer.{i}.feed_forward_in", layer + "mlp.fc1 +"});
    names.push_back({"layer.{i}.feed_forward_out", layer + "mlp.fc2 +"});
  }
  return {swiglu ? "dinov2_swiglu" : "dinov2",
          absl::StrCat(R"({"model_type": "dinov2", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "mlp_ratio": 3, "hidden_act": "gelu", "layer_norm_eps": 1e-6,
            "qkv_bias": false, "use_swiglu_ffn": )",
                       swiglu ? "true" : "false", "}"),
          Expand(names, 2),
          {MakeTensor("embeddings.mask_token", {1, 8})}};
}

TinyFamily Whisper() {
  const std::string layer = "model.encoder.layers.{i}.";
  return {"whisper",
          R"({"model_type": "whisper", "d_model": 8, "encoder_attention_heads": 2,
            "encoder_layers": 2, "encoder_ffn_dim": 12, "activation_function": "gelu",
            "decoder_layers": 1, "max_source_positions": 10})",
          Expand({{"front.positions", "model.encoder.embed_positions.weight"},
                  {"layer.{i}.query", layer + "self_attn.q_proj +"},
                  {"layer.{i}.key", layer + "self_attn.k_proj"},
                  {"layer.{i}.value", layer + "self_attn.v_proj +"},
                  {"layer.{i}.output", layer + "self_attn.out_proj +"},
                  {"layer.{i}.attention_norm", layer + "self_attn_layer_norm +"},
                  {"layer.{i}.feed_forward_in", layer + "fc1 +"},
                  {"layer.{i}.feed_forward_out", layer + "fc2 +"},
                  {"layer.{i}.feed_forward_norm", layer + "final_layer_norm +"},
                  {"exit_norm", "model.encoder.layer_norm +"}},
                 2),
          {MakeTensor("model.encoder.conv1.weight", {8, 4, 3}),
           MakeTensor("model.decoder.layers.0.fc1.weight", {12, 8})}};
}

TinyFamily Wav2Vec2(bool norm_first) {
  const std::string layer = "wav2vec2.encoder.layers.{i}.";
  Names names = {{"layer.{i}.query", layer + "attention.q_proj +"},
                 {"layer.{i}.key", layer + "attention.k_proj +"},
                 {"layer.{i}.value", layer + "attention.v_proj +"},
                 {"layer.{i}.output", layer + "attention.out_proj +"},
                 {"layer.{i}.attention_norm", layer + "layer_norm +"},
                 {"layer.{i}.feed_forward_in", layer + "feed_forward.intermediate_dense +"},
                 {"layer.{i}.feed_forward_out", layer + "feed_forward.output_dense +"},
                 {"layer.{i}.feed_forward_norm", layer + "final_layer_norm +"}};
  TinyFamily family = {norm_first ? "wav2vec2_norm_first" : "wav2vec2",
                       absl::StrCat(R"({"model_type": "wav2vec2", "hidden_size": 8,
            "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12,
            "hidden_act": "gelu", "layer_norm_eps": 1e-5, "do_stable_layer_norm": )",
                                    norm_first ? "true" : "false", "}"),
                       {},
                       {MakeTensor("wav2vec2.masked_spec_embed", {8}),
                        MakeTensor("wav2vec2.encoder.pos_conv_embed.conv.bias", {8})}};
  if (norm_first) {
    names.push_back({"exit_norm", "wav2vec2.encoder.layer_norm +"});
  } else {
    names.push_back({"front.norm", "wav2vec2.encoder.layer_norm +"});
  }
  family.weights = Expand(names, 2);
  return family;
}

TinyFamily ModernBert() {
  const std::string layer = "model.layers.{i}.";
  TinyFamily family = {"modernbert",
                       R"({"model_type": "modernbert", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 3, "intermediate_size": 12, "hidden_activation": "gelu",
            "norm_eps": 1e-5, "vocab_size": 10, "max_position_embeddings": 16,
            "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "local_attention": 6,
            "global_attn_every_n_layers": 2})",
                       Expand({{"embeddings.word", "model.embeddings.tok_embeddings.weight"},
                               {"embeddings.norm", "model.embeddings.norm"},
                               {"layer.{i}.query", layer + "attn.Wqkv", 0, 3},
                               {"layer.{i}.key", layer + "attn.Wqkv", 1, 3},
                               {"layer.{i}.value", layer + "attn.Wqkv", 2, 3},
                               {"layer.{i}.output", layer + "attn.Wo"},
                               {"layer.{i}.attention_norm", layer + "attn_norm"},
                               {"layer.{i}.feed_forward_gate", layer + "mlp.Wi", 0, 2},
                               {"layer.{i}.feed_forward_in", layer + "mlp.Wi", 1, 2},
                               {"layer.{i}.feed_forward_out", layer + "mlp.Wo"},
                               {"layer.{i}.feed_forward_norm", layer + "mlp_norm"},
                               {"exit_norm", "model.final_norm"}},
                              3),
                       {MakeTensor("decoder.bias", {10})}};
  std::erase_if(family.weights, [](const WeightName& weight) {
    return weight.canonical == "layer.0.attention_norm.weight";  // the family has no such norm
  });
  return family;
}

std::vector<WeightName> NomicWeights(const std::string& prefix) {
  const std::string layer = prefix + "encoder.layers.{i}.";
  return {{"embeddings.word", prefix + "embeddings.word_embeddings.weight"},
          {"embeddings.token_type", prefix + "embeddings.token_type_embeddings.weight"},
          {"embeddings.norm", prefix + "emb_ln +"},
          {"layer.{i}.query", layer + "attn.Wqkv", 0, 3},
          {"layer.{i}.key", layer + "attn.Wqkv", 1, 3},
          {"layer.{i}.value", layer + "attn.Wqkv", 2, 3},
          {"layer.{i}.output", layer + "attn.out_proj"},
          {"layer.{i}.attention_norm", layer + "norm1 +"},
          {"layer.{i}.feed_forward_in", layer + "mlp.fc11"},
          {"layer.{i}.feed_forward_gate", layer + "mlp.fc12"},
          {"layer.{i}.feed_forward_out", layer + "mlp.fc2"},
          {"layer.{i}.feed_forward_norm", layer + "norm2 +"}};
}

TinyFamily NomicBert() {
  return {"nomic_bert",
          R"({"model_type": "nomic_bert", "n_embd": 8, "n_head": 2, "n_layer": 2, "n_inner": 12,
            "activation_function": "swiglu", "layer_norm_epsilon": 1e-12, "vocab_size": 10,
            "type_vocab_size": 2, "n_positions": 16, "rotary_emb_base": 1000,
            "rotary_emb_fraction": 0.5, "rotary_emb_interleaved": false, "prenorm": false})",
          Expand(NomicWeights(""), 2),
          {}};
}

// Of its three layers the second has experts, as nomic-embed-text-v2-moe is published.
TinyFamily NomicBertWithExperts() {
  constexpr int64_t kExperts = 3;
  const std::string layer = "encoder.layers.{i}.", mixture = "encoder.layers.1.mlp.";
  Names names = {{"embeddings.word", "embeddings.word_embeddings.weight"},
                 {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
                 {"embeddings.norm", "emb_ln +"},
                 {"layer.{i}.query", layer + "attn.Wqkv +", 0, 3},
                 {"layer.{i}.key", layer + "attn.Wqkv +", 1, 3},
                 {"layer.{i}.value", layer + "attn.Wqkv +", 2, 3},
                 {"layer.{i}.output", layer + "attn.out_proj +"},
                 {"layer.{i}.attention_norm", layer + "norm1 +"},
                 {"layer.{i}.feed_forward_norm", layer + "norm2 +"},
                 {"layer.1.router", mixture + "router.layer"}};
  for (const std::string dense : {"0", "2"}) {
    const std::string of = "layer." + dense + ".", mlp = "encoder.layers." + dense + ".mlp.";
    names.push_back({of + "feed_forward_in", mlp + "fc1 +"});
    names.push_back({of + "feed_forward_out", mlp + "fc2 +"});
  }
  names = Expand(names, 3);
  for (int64_t i = 0; i < kExperts; ++i) {
    const std::string expert = absl::StrCat("layer.1.expert.", i, ".");
    names.push_back({expert + "feed_forward_in.weight", mixture + "experts.mlp.w1", i, kExperts});
    names.push_back({expert + "feed_forward_out.weight", mixture + "experts.mlp.w2", i, kExperts,
                     Layout::kTransposed});
  }
  names.push_back({"layer.1.experts_bias", mixture + "experts.bias"});
  return {"nomic_bert_experts",
          R"({"model_type": "nomic_bert", "architectures": ["NomicBertModel"], "n_embd": 8,
            "n_head": 2, "n_layer": 3, "n_inner": 12, "activation_function": "gelu",
            "layer_norm_epsilon": 1e-05, "vocab_size": 10, "type_vocab_size": 2,
            "n_positions": 16, "rotary_emb_base": 10000.0, "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": false, "rotary_emb_scale_base": null,
            "rotary_scaling_factor": null, "prenorm": false, "expert_choice_router": false,
            "ffn_div": 1.0, "moe_every_n_layers": 2, "moe_impl": "megablocks",
            "moe_normalize_expert_weights": false, "moe_resid_pdrop": 0.0, "moe_top_k": 2,
            "num_experts": 3, "num_shared_experts": 0, "router_aux_loss_coef": 0.1})",
          std::move(names),
          {}};
}

TinyFamily NeoBert() {
  const std::string layer = "model.transformer_encoder.{i}.";
  return {"neobert",
          R"({"model_type": "neobert", "architectures": ["NeoBERTLMHead"], "hidden_size": 8,
            "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 22,
            "vocab_size": 10, "norm_eps": 1e-05, "pad_token_id": 0, "max_length": 16,
            "dim_head": 4, "embedding_init_range": 0.02, "decoder_init_range": 0.02,
            "kwargs": {"trust_remote_code": true}})",
          Expand({{"embeddings.word", "model.encoder.weight"},
                  {"layer.{i}.query", layer + "qkv", 0, 3, Layout::kEachHead},
                  {"layer.{i}.key", layer + "qkv", 1, 3, Layout::kEachHead},
                  {"layer.{i}.value", layer + "qkv", 2, 3, Layout::kEachHead},
                  {"layer.{i}.output", layer + "wo"},
                  {"layer.{i}.attention_norm", layer + "attention_norm"},
                  {"layer.{i}.feed_forward_gate", layer + "ffn.w12", 0, 2},
                  {"layer.{i}.feed_forward_in", layer + "ffn.w12", 1, 2},
                  {"layer.{i}.feed_forward_out", layer + "ffn.w3"},
                  {"layer.{i}.feed_forward_norm", layer + "ffn_norm"},
                  {"exit_norm", "model.layer_norm"}},
                 2),
          {MakeTensor("decoder.weight", {10, 8}), MakeTensor("decoder.bias", {10})}};
}

// The form in which transformers 5 writes it, with heads that do not make up the hidden size.
TinyFamily NomicBertOfTheLibrary() {
  std::vector<WeightName> weights = NomicWeights("nomic_bert.");
  weights.push_back({"pooling.dense", "nomic_bert.pooler.dense +"});
  return {"nomic_bert_library",
          R"({"model_type": "nomic_bert", "hidden_size": 8, "num_attention_heads": 2, "head_dim": 6,
            "num_hidden_layers": 2, "intermediate_size": 12, "hidden_act": "gelu",
            "layer_norm_eps": 1e-6, "vocab_size": 10, "type_vocab_size": 2,
            "max_position_embeddings": 16,
            "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"}})",
          Expand(weights, 2),
          {}};
}

std::vector<WeightName> GteWeights(const std::string& prefix) {
  const std::string layer = prefix + "encoder.layer.{i}.";
  return {{"embeddings.word", prefix + "embeddings.word_embeddings.weight"},
          {"embeddings.norm", prefix + "embeddings.LayerNorm +"},
          {"layer.{i}.query", layer + "attention.qkv_proj +", 0, 3},
          {"layer.{i}.key", layer + "attention.qkv_proj +", 1, 3},
          {"layer.{i}.value", layer + "attention.qkv_proj +", 2, 3},
          {"layer.{i}.output", layer + "attention.o_proj +"},
          {"layer.{i}.attention_norm", layer + "attn_ln +"},
          {"layer.{i}.feed_forward_in", layer + "mlp.up_gate_proj", 0, 2},
          {"layer.{i}.feed_forward_gate", layer + "mlp.up_gate_proj", 1, 2},
          {"layer.{i}.feed_forward_out", layer + "mlp.down_proj +"},
          {"layer.{i}.feed_forward_norm", layer + "mlp_ln +"}};
}

TinyFamily Gte() {
  return {"gte",
          R"({"model_type": "new", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "hidden_act": "gelu",
            "layer_norm_eps": 1e-12, "vocab_size": 10, "type_vocab_size": 0,
            "max_position_embeddings": 16, "position_embedding_type": "rope",
            "rope_theta": 160000, "rope_scaling": null, "layer_norm_type": "layer_norm"})",
          Expand(GteWeights("new."), 2),
          {}};
}

// The form in which transformers 5 writes it.
TinyFamily GteOfTheLibrary() {
  return {"gte_library",
          R"({"model_type": "gte", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "hidden_act": "relu",
            "layer_norm_eps": 1e-12, "vocab_size": 10, "type_vocab_size": 0,
            "max_position_embeddings": 16,
            "rope_parameters": {"rope_theta": 500.0, "rope_type": "linear", "factor": 4.0}})",
          Expand(GteWeights("gte."), 2),
          {}};
}

TinyFamily JinaBert() {
  const std::string layer = "encoder.layer.{i}.";
  return {"jina_bert",
          R"({"model_type": "bert", "architectures": ["JinaBertForMaskedLM"], "hidden_size": 8,
            "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12,
            "hidden_act": "gelu", "layer_norm_eps": 1e-12, "vocab_size": 10, "type_vocab_size": 2,
            "max_position_embeddings": 16, "position_embedding_type": "alibi",
            "feed_forward_type": "geglu"})",
          Expand({{"embeddings.word", "embeddings.word_embeddings.weight"},
                  {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
                  {"embeddings.norm", "embeddings.LayerNorm +"},
                  {"layer.{i}.query", layer + "attention.self.query +"},
                  {"layer.{i}.key", layer + "attention.self.key +"},
                  {"layer.{i}.value", layer + "attention.self.value +"},
                  {"layer.{i}.output", layer + "attention.output.dense +"},
                  {"layer.{i}.attention_norm", layer + "attention.output.LayerNorm +"},
                  {"layer.{i}.feed_forward_gate", layer + "mlp.gated_layers", 0, 2},
                  {"layer.{i}.feed_forward_in", layer + "mlp.gated_layers", 1, 2},
                  {"layer.{i}.feed_forward_out", layer + "mlp.wo +"},
                  {"layer.{i}.feed_forward_norm", layer + "mlp.layernorm +"},
                  {"pooling.dense", "pooler.dense +"}},
                 2),
          {}};
}

// The model for code has further norms and another order in its feed-forward block.
TinyFamily JinaBertForCode() {
  const std::string layer = "bert.encoder.layer.{i}.";
  TinyFamily family = JinaBert();
  family.name = "jina_bert_code";
  family.weights =
      Expand({{"embeddings.word", "bert.embeddings.word_embeddings.weight"},
              {"embeddings.token_type", "bert.embeddings.token_type_embeddings.weight"},
              {"embeddings.norm", "bert.embeddings.LayerNorm +"},
              {"layer.{i}.query", layer + "attention.self.query +"},
              {"layer.{i}.key", layer + "attention.self.key +"},
              {"layer.{i}.value", layer + "attention.self.value +"},
              {"layer.{i}.query_norm", layer + "attention.self.layer_norm_q +"},
              {"layer.{i}.key_norm", layer + "attention.self.layer_norm_k +"},
              {"layer.{i}.output", layer + "attention.output.dense +"},
              {"layer.{i}.attention_norm", layer + "attention.output.LayerNorm +"},
              {"layer.{i}.second_attention_norm", layer + "layer_norm_1 +"},
              {"layer.{i}.feed_forward_in", layer + "mlp.up_gated_layer", 0, 2},
              {"layer.{i}.feed_forward_gate", layer + "mlp.up_gated_layer", 1, 2},
              {"layer.{i}.feed_forward_out", layer + "mlp.down_layer +"},
              {"layer.{i}.feed_forward_norm", layer + "layer_norm_2 +"}},
             2);
  return family;
}

// The names of Llama's files, with " +" where queries, keys and values have biases.
Names LlamaNames(const std::string& prefix, const std::string& biases) {
  const std::string layer = prefix + "layers.{i}.", attention = layer + "self_attn.";
  return {{"embeddings.word", prefix + "embed_tokens.weight"},
          {"layer.{i}.query", attention + "q_proj" + biases},
          {"layer.{i}.key", attention + "k_proj" + biases},
          {"layer.{i}.value", attention + "v_proj" + biases},
          {"layer.{i}.output", attention + "o_proj"},
          {"layer.{i}.attention_norm", layer + "input_layernorm"},
          {"layer.{i}.feed_forward_gate", layer + "mlp.gate_proj"},
          {"layer.{i}.feed_forward_in", layer + "mlp.up_proj"},
          {"layer.{i}.feed_forward_out", layer + "mlp.down_proj"},
          {"layer.{i}.feed_forward_norm", layer + "post_attention_layernorm"},
          {"exit_norm", prefix + "norm"}};
}

std::string LlamaConfig(const std::string& model_type, const std::string& more) {
  return absl::StrCat(R"({"model_type": ")", model_type, R"(", "hidden_size": 8,
            "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 3,
            "intermediate_size": 12, "vocab_size": 10, "max_position_embeddings": 16,
            "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0)",
                      more, "}");
}

TinyFamily Llama(const std::string& model_type, const std::string& more) {
  return {model_type,
          LlamaConfig(model_type, more),
          Expand(LlamaNames("model.", ""), 3),
          {MakeTensor("lm_head.weight", {10, 8})}};
}

TinyFamily Qwen2() {
  return {"qwen2",
          LlamaConfig("qwen2", R"(, "use_sliding_window": true, "sliding_window": 4,
            "max_window_layers": 2, "tie_word_embeddings": true)"),
          Expand(LlamaNames("", " +"), 3),
          {}};
}

TinyFamily Qwen3() {
  Names names = LlamaNames("", "");
  names.push_back({"layer.{i}.query_norm", "layers.{i}.self_attn.q_norm"});
  names.push_back({"layer.{i}.key_norm", "layers.{i}.self_attn.k_norm"});
  return {"qwen3",
          LlamaConfig("qwen3", R"(, "head_dim": 6, "attention_bias": false,
            "use_sliding_window": false, "sliding_window": null, "max_window_layers": 28,
            "rope_scaling": null)"),
          Expand(names, 3),
          {}};
}

// The form in which transformers 5 writes it; task_adapters_test.cc has that of its authors.
TinyFamily JinaV3() {
  const std::string layer = "roberta.layers.{i}.";
  return {"jina_embeddings_v3",
          R"({"model_type": "jina_embeddings_v3", "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 12, "hidden_act": "gelu",
            "layer_norm_eps": 1e-5, "vocab_size": 10, "type_vocab_size": 2,
            "max_position_embeddings": 16,
            "rope_parameters": {"rope_theta": 30.0, "rope_type": "default"}})",
          Expand({{"embeddings.word", "roberta.embeddings.word_embeddings.weight"},
                  {"embeddings.token_type", "roberta.embeddings.token_type_embeddings.weight"},
                  {"embeddings.norm", "roberta.embeddings.LayerNorm +"},
                  {"layer.{i}.query", layer + "self_attn.q_proj +"},
                  {"layer.{i}.key", layer + "self_attn.k_proj +"},
                  {"layer.{i}.value", layer + "self_attn.v_proj +"},
                  {"layer.{i}.output", layer + "self_attn.o_proj +"},
                  {"layer.{i}.attention_norm", layer + "post_attention_layernorm +"},
                  {"layer.{i}.feed_forward_in", layer + "mlp.fc1 +"},
                  {"layer.{i}.feed_forward_out", layer + "mlp.fc2 +"},
                  {"layer.{i}.feed_forward_norm", layer + "post_mlp_layernorm +"},
                  {"pooling.dense", "roberta.pooler.dense +"}},
                 2),
          {}};
}

TinyFamily Gemma3() {
  Names names = LlamaNames("", "");
  std::erase_if(names, [](const WeightName& name) {
    return absl::EndsWith(name.canonical, "feed_forward_norm");
  });
  names.push_back({"layer.{i}.query_norm", "layers.{i}.self_attn.q_norm"});
  names.push_back({"layer.{i}.key_norm", "layers.{i}.self_attn.k_norm"});
  names.push_back({"layer.{i}.attention_branch_norm", "layers.{i}.post_attention_layernorm"});
  names.push_back({"layer.{i}.feed_forward_norm", "layers.{i}.pre_feedforward_layernorm"});
  names.push_back({"layer.{i}.feed_forward_branch_norm", "layers.{i}.post_feedforward_layernorm"});
  std::string config = LlamaConfig("gemma3_text", R"(, "head_dim": 6, "query_pre_attn_scalar": 16,
            "hidden_activation": "gelu_pytorch_tanh", "rope_local_base_freq": 100.0,
            "rope_scaling": null, "sliding_window": 8, "_sliding_window_pattern": 3,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "attn_logit_softcapping": null, "final_logit_softcapping": null,
            "use_bidirectional_attention": true)");
  return {"gemma3_text",
          absl::StrReplaceAll(config, {{"\"hidden_act\": \"silu\",", ""}}),
          Expand(names, 3),
          {}};
}

}  // namespace

std::vector<TinyFamily> TinyFamilies() {
  std::vector<TinyFamily> families = {
      Albert(),
      BigBird(),
      MobileBert(),
      MobileBertWithStatistics(),
      MpNet(),
      DebertaV2(false),
      DebertaV2(true),
      DebertaV2WithConvolution(),
      T5(false),
      T5(true),
      Vit(),
      ClipVision(),
      ClipText(),
      SiglipVision(),
      SiglipText(),
      Dinov2(false),
      Dinov2(true),
      Whisper(),
      Wav2Vec2(false),
      Wav2Vec2(true),
      ModernBert(),
      NomicBert(),
      NomicBertWithExperts(),
      NeoBert(),
      Gte(),
      JinaBert(),
      JinaBertForCode(),
      JinaV3(),
      NomicBertOfTheLibrary(),
      GteOfTheLibrary(),
      Qwen3(),
      Qwen2(),
      Gemma3(),
      Llama("llama", ""),
      Llama("mistral", R"(, "sliding_window": 3)"),
      Llama("eurobert", R"(, "mask_token_id": 4, "classifier_pooling": "mean")")};
  for (TinyFamily& family : TinyBertFamilies()) families.push_back(std::move(family));
  return families;
}

std::vector<TestTensor> TensorsOf(const TinyFamily& family) {
  TempFolder folder;
  folder.Write("config.json", family.config);
  absl::StatusOr<ModelConfig> config = ReadModelConfig(folder.path());
  EXPECT_TRUE(config.ok()) << config.status();
  if (!config.ok()) return {};
  config->description.pooling = config->pooler;
  if (QueryKeyNorms& norms = config->description.layer.attention.query_key_norms;
      norms == QueryKeyNorms::kNone) {
    norms = QueryKeyNorms::kAllHeads;
  }
  LayerShape& layer = config->description.layer;
  layer.extras.has_second_attention_norm = layer.norms.placement == NormPlacement::kPost;

  // Some sizes are known only from the file.
  std::map<std::string, std::vector<int64_t>> shapes = {{"front.class", {1, 1, 8}},
                                                        {"front.positions", {1, 5, 8}},
                                                        {"front.norm.weight", {8}},
                                                        {"front.norm.bias", {8}}};
  for (const WeightSpec& spec : ListWeights(config->description)) shapes[spec.name] = spec.shape;
  if (const auto& patches = config->description.patch_embedding) {
    shapes["front.projection.weight"] = {8, 3, patches->patch_size, patches->patch_size};
    const bool has_class = absl::c_any_of(
        family.weights, [](const WeightName& name) { return name.canonical == "front.class"; });
    shapes["front.positions"] = {1, patches->grid() * patches->grid() + (has_class ? 1 : 0), 8};
  }
  std::vector<TestTensor> tensors = family.others;
  for (const WeightName& weight : family.weights) {
    EXPECT_TRUE(shapes.contains(weight.canonical)) << weight.canonical;
    if (weight.index > 0 || !shapes.contains(weight.canonical)) continue;
    std::vector<int64_t> shape = shapes[weight.canonical];
    if (weight.layout == Layout::kTransposed) std::swap(shape[0], shape[1]);
    if (weight.count > 1) shape[0] *= weight.count;
    tensors.push_back(MakeTensor(weight.in_file, std::move(shape)));
  }
  return tensors;
}

void WriteFamily(const TempFolder& folder, const TinyFamily& family) {
  folder.Write("config.json", family.config);
  folder.Write("model.safetensors", MakeSafetensors(TensorsOf(family)));
}

}  // namespace attendant
