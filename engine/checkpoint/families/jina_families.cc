// Jina's embeddings v3: XLM-RoBERTa with rotary positions.
#include "engine/checkpoint/families/families.h"

namespace attendant {
namespace {

// The names of the library, and those that the authors publish. There every weight of a linear
// layer and every table is the "original" of a parametrization; see task_adapters.h.
NamePatterns JinaV3Names() {
  const std::string layer = "encoder.layers.{i}.", original = ".parametrizations.weight.original";
  NamePatterns names =
      LayerNames("layers.{i}.",
                 {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                  "post_attention_layernorm", "mlp.fc1", "mlp.fc2", "post_mlp_layernorm"});
  const NamePatterns others = {
      {"embeddings.word", "embeddings.word_embeddings.weight"},
      {"embeddings.word", "embeddings.word_embeddings" + original},
      {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
      {"embeddings.token_type", "embeddings.token_type_embeddings" + original},
      {"embeddings.norm", "embeddings.LayerNorm"},
      {"embeddings.norm", "emb_ln"},
      {"layer.{i}.output", layer + "mixer.out_proj"},
      {"layer.{i}.output.weight", layer + "mixer.out_proj" + original},
      {"layer.{i}.attention_norm", layer + "norm1"},
      {"layer.{i}.feed_forward_in", layer + "mlp.fc1"},
      {"layer.{i}.feed_forward_in.weight", layer + "mlp.fc1" + original},
      {"layer.{i}.feed_forward_out", layer + "mlp.fc2"},
      {"layer.{i}.feed_forward_out.weight", layer + "mlp.fc2" + original},
      {"layer.{i}.feed_forward_norm", layer + "norm2"},
      {"pooling.dense", "pooler.dense"},
      {"pooling.dense.weight", "pooler.dense" + original},
      {"classifier.dense", "/classifier.dense"},
      {"classifier.output", "/classifier.out_proj"},
  };
  for (const NamePatterns& more :
       {others, StackedInputs(layer + "mixer.Wqkv"),
        Stacked({"layer.{i}.query.weight", "layer.{i}.key.weight", "layer.{i}.value.weight"},
                layer + "mixer.Wqkv" + original)}) {
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

Family JinaV3() {
  return {
      .name = "jina_embeddings_v3",
      .model_types = {"jina_embeddings_v3"},
      .architectures = {"JinaEmbeddingsV3"},
      .prefixes = {"roberta."},
      .parts = {"embeddings.", "emb_ln.", "encoder.", "layers."},
      .pooler = "pooler.",
      .keys = {.positions = {},
               .token_types = {"type_vocab_size"},
               .rotary_theta = {"rotary_emb_base", "rope_theta"},
               .rotary_parameters = {"rope_parameters"},
               .rotary_scaling = {"rope_scaling"}},
      .fixed_keys = {{"partial_rotary_factor", 1}, {"use_reg_tokens", false}},
      .harmless_keys = Words("emb_pooler load_trained_adapters lora_adaptations lora_alpha "
                             "lora_dropout_p lora_main_params_trainable lora_prompts lora_rank "
                             "max_position_embeddings task_instructions truncate_dim "
                             "use_flash_attn"),
      .own_transformer = "custom_st.Transformer",
      .norm_epsilon = 1e-5f,
      .relative_positions = {.kind = RelativePositions::kRotary},
      .rotary_theta = 20000,
      .names = JinaV3Names(),
  };
}

// As its authors publish it, with the model_type of XLM-RoBERTa.
Family PublishedJinaV3() {
  Family family = JinaV3();
  family.model_types = {"xlm-roberta"};
  family.architectures = {};
  family.position_embedding_types = {"rotary"};
  return family;
}

}  // namespace

std::vector<Family> JinaFamilies() { return {JinaV3(), PublishedJinaV3()}; }

}  // namespace attendant
