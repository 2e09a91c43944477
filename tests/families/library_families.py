"""Every family of PyPI's transformers that the server knows, as small random models of many configurations."""
import functools

import torch
import transformers as t

from family import Family

t.logging.set_verbosity_error()  # it would warn of what it does instead of what it was asked
t.logging.disable_progress_bar()


def image(config):
    return {"pixel_values": torch.randn(1, 3, config.image_size, config.image_size)}


def audio(config):
    return {"input_values": torch.randn(1, 700)}


def mel(config):
    return {"input_features": torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)}


BERT_VARIANTS = {
    "plain": {},
    "head-26": {"hidden_size": 78, "num_attention_heads": 3},
    "one-layer": {"num_hidden_layers": 1},
    "relu": {"hidden_act": "relu"},
    "gelu-new": {"hidden_act": "gelu_new", "intermediate_size": 77},
    "one-head": {"num_attention_heads": 1, "hidden_act": "silu"},
    "f16-file": {"save": "float16"},
    "bf16-shards": {"save": "bfloat16", "shard": "20KB"},
}
# All activations that the server takes, under all their names.
ACTIVATIONS = ("gelu_python", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh", "gelu_python_tanh", "quick_gelu", "swish",
               "tanh", "sigmoid", "linear")
BERT = {"vocab_size": 60, "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 96,
        "max_position_embeddings": 40}
PATCHES = {"hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 96,
           "image_size": 20, "patch_size": 4}
DINO = {key: value for key, value in PATCHES.items() if key != "intermediate_size"}
AUDIO = {"hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 96, "vocab_size": 20,
         "conv_dim": (16, 16), "conv_kernel": (8, 4), "conv_stride": (5, 4), "num_feat_extract_layers": 2,
         "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}


def patches(model):
    return model.embeddings.patch_embeddings, "output"


def before_norm(model):
    return None if model.config.do_stable_layer_norm else (model.encoder.layer_norm, "input")


AUDIO_VARIANTS = {
    "post": {},
    "pre": {"do_stable_layer_norm": True},
    "pre-head-26": {"do_stable_layer_norm": True, "hidden_size": 78, "num_attention_heads": 3},
    "one-layer": {"num_hidden_layers": 1},
    "relu": {"hidden_act": "relu"},
    "pre-one-head-f16": {"do_stable_layer_norm": True, "num_attention_heads": 1, "save": "float16"},
}
VIT_VARIANTS = {
    "plain": {},
    "no-qkv-bias": {"qkv_bias": False},
    "head-26": {"hidden_size": 78, "num_attention_heads": 3},
    "one-layer": {"num_hidden_layers": 1},
    "relu": {"hidden_act": "relu", "layer_norm_eps": 1e-6},
    "pooler": {"pooler_act": "sigmoid", "pooler_output_size": 30, "hidden_act": "quick_gelu"},
    "bf16-shards": {"save": "bfloat16", "shard": "20KB"},
}
DINO_VARIANTS = {
    "plain": {},
    "swiglu": {"use_swiglu_ffn": True},
    "swiglu-odd": {"use_swiglu_ffn": True, "hidden_size": 78, "num_attention_heads": 3, "mlp_ratio": 3},
    "no-qkv-bias": {"qkv_bias": False},
    "one-layer": {"num_hidden_layers": 1, "hidden_act": "relu"},
    "swiglu-f16": {"use_swiglu_ffn": True, "save": "float16"},
}

T5 = {"vocab_size": 60, "d_model": 48, "d_kv": 12, "num_heads": 4, "num_layers": 3, "d_ff": 96}
# The encoder's table of words is not the shared one.
UNTIED = {"untied": {"tie_word_embeddings": False, "reload": True}}
T5_VARIANTS = {
    "gated-gelu": {"feed_forward_proj": "gated-gelu"},
    "gated-silu": {"feed_forward_proj": "gated-silu"},
    "wide-heads": {"d_kv": 26, "num_heads": 3},
    "narrow-heads": {"d_kv": 5, "d_ff": 77},
    "few-buckets": {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 10},
    "one-layer": {"num_layers": 1}, **UNTIED,
    "bf16-shards": {"save": "bfloat16", "shard": "20KB"},
}


def published_nomic(config: dict) -> dict:
    """Renames the keys to those in the authors' files."""
    return {"model_type": "nomic_bert", "n_embd": config["hidden_size"], "n_head": config["num_attention_heads"],
            "n_layer": config["num_hidden_layers"], "n_inner": config["intermediate_size"],
            "activation_function": {"silu": "swiglu", "gelu": "geglu"}[config["hidden_act"]],
            "layer_norm_epsilon": config["layer_norm_eps"], "vocab_size": config["vocab_size"],
            "type_vocab_size": config["type_vocab_size"], "n_positions": config["max_position_embeddings"],
            "rotary_emb_base": config["rope_parameters"]["rope_theta"], "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": False, "rotary_scaling_factor": None, "prenorm": False}


def published_gte(config: dict) -> dict:
    """Does the same for GTE."""
    shared = {key: value for key, value in config.items() if key not in ("rope_parameters", "architectures")}
    return {**shared, "model_type": "new", "position_embedding_type": "rope", "layer_norm_type": "layer_norm",
            "rope_theta": config["rope_parameters"]["rope_theta"], "rope_scaling": None}


def scaled_gte(config: dict) -> dict:
    """Like most of the authors' models, where NTK_FACTOR has been folded into NTK_ROTATION."""
    return {**published_gte(config), "rope_theta": 100.0, "rope_scaling": {"type": "ntk", "factor": NTK_FACTOR}}


# Frequencies 1 / ((theta factor)^(2 i / D) factor^(2 / D)), which the library has no name for: heads of D = 12.
NTK_FACTOR = 8.0
NTK_ROTATION = {"rope_type": "linear", "rope_theta": 100.0 * NTK_FACTOR, "factor": NTK_FACTOR ** (2 / 12)}


def without_rotation(**keys):
    """Changes a saved config: what it says of rotary positions is replaced by these keys."""
    def change(config: dict) -> dict:
        return {key: value for key, value in config.items() if key != "rope_parameters"} | keys
    return {"config_json": change, "reload": True}


def with_keys(**keys):
    return {"config_json": lambda config: config | keys, "reload": True}


def without_keys(*names, **keys):
    return {"config_json": lambda config: {key: value for key, value in config.items() if key not in names} | keys,
            "reload": True}


LINEAR = {"rope_type": "linear", "factor": 3.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10, "beta_fast": 2.0, "beta_slow": 0.3}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 20, "low_freq_factor": 0.5,
          "high_freq_factor": 2.0}
# Of the library's form with parameters for all layers.
ROTATIONS = {
    "default-theta": without_rotation(),
    "rope-theta": without_rotation(rope_theta=50.0),
    "rope-scaling": without_rotation(rope_theta=50.0, rope_scaling=LINEAR),
    "older-rope-scaling": without_rotation(rope_scaling={"type": "linear", "factor": 3.0, "rope_theta": 70.0}),
    "yarn": without_rotation(rope_theta=50.0, rope_scaling=YARN),
    "yarn-whole": with_keys(rope_parameters={**YARN, "rope_theta": 50.0, "truncate": False, "attention_factor": 1.3}),
    "yarn-mscale": with_keys(rope_parameters={**YARN, "rope_theta": 50.0, "mscale": 0.7, "mscale_all_dim": 0.4}),
    "yarn-lengths": without_rotation(rope_theta=50.0, original_max_position_embeddings=10,
                                     rope_scaling={**YARN, "factor": None}),
    "llama3": with_keys(rope_parameters={**LLAMA3, "rope_theta": 50.0}),
}


def encoder_of(model):
    return model.get_encoder()


class VisionTower:
    """The vision tower of CLIP; its last hidden states with the last norm, which the library gives the class token alone."""

    def __init__(self, model):
        self.model = model

    def __call__(self, **arguments):
        out = self.model.vision_model(**arguments)
        out.last_hidden_state = self.model.vision_model.post_layernorm(out.last_hidden_state)
        out.pooler_output = self.model.visual_projection(out.pooler_output)
        return out


class TextTower:
    """The text tower of CLIP or SigLIP."""

    def __init__(self, model):
        self.model = model

    def __call__(self, **arguments):
        out = self.model.text_model(**arguments)
        if hasattr(self.model, "text_projection"):
            out.pooler_output = self.model.text_projection(out.pooler_output)
        return out


TINY_TOWER = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16}
TINY_TEXT, TINY_VISION = {**TINY_TOWER, "vocab_size": 20}, {**TINY_TOWER, "image_size": 4, "patch_size": 4}


def towers(config_class, side: str, **whole):
    """Makes configs of two towers, of which one has the keywords."""
    def make(**keys):
        sections = {"text_config": TINY_TEXT, "vision_config": TINY_VISION, f"{side}_config": keys}
        return config_class(**sections, **whole)
    return make


def tower_images(config):
    return image(getattr(config, "vision_config", config))


# The first of several tokens that may end texts counts, in old configs that of the largest id.
CLIP_TEXT = {**BERT, "eos_token_id": 50}
TOWER_VARIANTS = {
    "plain": {}, "epsilon": {"hidden_act": "gelu", "layer_norm_eps": 1e-3},
    "head-26": {"hidden_size": 78, "num_attention_heads": 3}, "one-layer": {"num_hidden_layers": 1},
    "one-head": {"num_attention_heads": 1, "intermediate_size": 77}, "f16-file": {"save": "float16"},
    "bf16-shards": {"save": "bfloat16", "shard": "20KB"},
}
IMAGE_VARIANTS = {"one-patch": {"patch_size": 20}, "odd-patches": {"image_size": 21, "patch_size": 7}}


BART = {"vocab_size": 60, "d_model": 48, "encoder_attention_heads": 4, "encoder_layers": 3, "encoder_ffn_dim": 96,
        "decoder_attention_heads": 4, "decoder_layers": 1, "decoder_ffn_dim": 16, "max_position_embeddings": 40,
        "pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 1, "decoder_start_token_id": 1, "forced_eos_token_id": 1}
BART_VARIANTS = {
    "plain": {}, "scaled": {"scale_embedding": True}, **UNTIED,
    "head-26": {"d_model": 78, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
    "one-layer": {"encoder_layers": 1}, "silu": {"activation_function": "silu", "encoder_ffn_dim": 77},
    "one-head": {"encoder_attention_heads": 1}, "f16-file": {"save": "float16"},
    "bf16-shards": {"save": "bfloat16", "shard": "20KB"},
}
ESM = {**BERT, "pad_token_id": 1, "mask_token_id": 7, "position_embedding_type": "rotary", "token_dropout": True,
       "emb_layer_norm_before": False}
CAUSAL = {"vocab_size": 60, "hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
          "intermediate_size": 96, "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
CAUSAL_VARIANTS = {
    "plain": {},
    "one-key-head": {"num_key_value_heads": 1, "intermediate_size": 77},
    "own-keys": {"num_key_value_heads": 4, "hidden_act": "gelu"},
    "own-head-width": {"head_dim": 10, "rms_norm_eps": 1e-3},
    "head-26": {"hidden_size": 78, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 26},
    "one-layer": {"num_hidden_layers": 1},
    "bidirectional": {"is_causal": False},
    "bf16-shards": {"save": "bfloat16", "shard": "20KB"},
    **ROTATIONS,
}
BIASES = {"biases": {"attention_bias": True}}
QWEN_WINDOW = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
QWEN_VARIANTS = {
    "window": QWEN_WINDOW,
    "listed-windows": {**QWEN_WINDOW, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    "old-windows": {**QWEN_WINDOW, **with_keys(layer_types=None)},
    "bidirectional-window": {**QWEN_WINDOW, "is_causal": False},
}
ONE_WINDOW = {"window": {"sliding_window": 5}, "default-window": {"sliding_window": 4096},
              "bidirectional-window": {"sliding_window": 5, "is_causal": False}}


# Every third layer sees everything.
GEMMA = {"vocab_size": 60, "hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "num_hidden_layers": 4, "intermediate_size": 96, "max_position_embeddings": 40, "sliding_window": 8,
         "query_pre_attn_scalar": 20, "use_bidirectional_attention": True, "pad_token_id": 0,
         "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]}
GEMMA_THETAS = (("full_attention", 900.0), ("sliding_attention", 40.0))


FAMILIES = {
    "bert": Family(t.BertModel, t.BertConfig, BERT,
                   BERT_VARIANTS | {name: {"hidden_act": name} for name in ACTIVATIONS}, pooler=True,
                   classifier=t.BertForSequenceClassification),
    "roberta": Family(t.RobertaModel, t.RobertaConfig, BERT, BERT_VARIANTS, counted=True, pooler=True,
                      classifier=t.RobertaForSequenceClassification),
    "xlm-roberta": Family(t.XLMRobertaModel, t.XLMRobertaConfig, {**BERT, "type_vocab_size": 1},
                          {**BERT_VARIANTS, "quick-gelu": {"hidden_act": "quick_gelu"}}, counted=True, pooler=True,
                          classifier=t.XLMRobertaForSequenceClassification),
    "camembert": Family(t.CamembertModel, t.CamembertConfig, {**BERT, "type_vocab_size": 1},
                        {**BERT_VARIANTS, "epsilon": {"layer_norm_eps": 1e-3}}, counted=True, pooler=True,
                        classifier=t.CamembertForSequenceClassification),
    "electra": Family(t.ElectraModel, t.ElectraConfig, {**BERT, "embedding_size": 20},
                      {**BERT_VARIANTS, "same-width": {"embedding_size": 48}},
                      classifier=t.ElectraForSequenceClassification),
    "distilbert": Family(
        t.DistilBertModel, t.DistilBertConfig,
        {"vocab_size": 60, "dim": 48, "n_heads": 4, "n_layers": 3, "hidden_dim": 96, "max_position_embeddings": 40},
        {"plain": {}, "head-26": {"dim": 78, "n_heads": 3}, "one-layer": {"n_layers": 1},
         "relu": {"activation": "relu"}, "sinusoids": {"sinusoidal_pos_embds": True}, "f16-file": {"save": "float16"}},
        position_ids=False, row_positions=0, classifier=t.DistilBertForSequenceClassification),
    "albert": Family(
        t.AlbertModel, t.AlbertConfig, {**BERT, "embedding_size": 20},
        {**BERT_VARIANTS, "two-groups": {"num_hidden_layers": 5, "num_hidden_groups": 2},
         "own-layers": {"num_hidden_groups": 3}, "same-width": {"embedding_size": 48}}, pooler=True,
        classifier=t.AlbertForSequenceClassification),
    "mpnet": Family(t.MPNetModel, t.MPNetConfig, BERT, BERT_VARIANTS, counted=True, pooler=True,
                    classifier=t.MPNetForSequenceClassification),
    "mobilebert": Family(
        t.MobileBertModel, t.MobileBertConfig,
        {**BERT, "embedding_size": 20, "intra_bottleneck_size": 24, "num_feedforward_networks": 3, "hidden_act": "relu"},
        {"plain": {}, "all-inside": {"use_bottleneck_attention": True, "key_query_shared_bottleneck": False},
         "no-bottleneck": {"use_bottleneck": False, "num_feedforward_networks": 1},
         "no-trigrams": {"trigram_input": False, "hidden_act": "gelu"},
         "same-width": {"trigram_input": False, "embedding_size": 48},
         "head-26": {"intra_bottleneck_size": 78, "num_attention_heads": 3}, "one-layer": {"num_hidden_layers": 1},
         "one-head": {"num_attention_heads": 1, "hidden_act": "silu"}, "f16-file": {"save": "float16"},
         "layer-norm": {"normalization_type": "layer_norm"},
         "layer-norm-no-bottleneck": {"normalization_type": "layer_norm", "use_bottleneck": False,
                                      "num_feedforward_networks": 1}},
        pooler=True, classifier=t.MobileBertForSequenceClassification, blank=True, gamma=0.5),
    "big_bird": Family(
        t.BigBirdModel, t.BigBirdConfig, {**BERT, "block_size": 2, "num_random_blocks": 1, "hidden_act": "gelu_new"},
        {"sparse": {}, "drawn": {"block_size": 1, "num_random_blocks": 3, "use_bias": False},
         "wide-blocks": {"block_size": 3, "hidden_act": "gelu"},
         "single": {"block_size": 1, "num_random_blocks": 2, "rescale_embeddings": True},
         "full": {"attention_type": "original_full"}, "head-26": {"hidden_size": 78, "num_attention_heads": 3},
         "one-layer": {"num_hidden_layers": 1, "hidden_act": "relu"},
         "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        pooler=True, classifier=t.BigBirdForSequenceClassification, alone=True),
    "deberta-v2": Family(
        t.DebertaV2Model, t.DebertaV2Config,
        {**BERT, "type_vocab_size": 0, "relative_attention": True, "position_buckets": 8, "max_relative_positions": -1,
         "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": ["p2c", "c2p"],
         "position_biased_input": False},
        {"v3": {}, "own-projections": {"share_att_key": False, "norm_rel_ebd": "none"},
         "no-buckets": {"position_buckets": -1, "max_relative_positions": 12},
         "c2p": {"pos_att_type": ["c2p"], "share_att_key": False},
         "p2c-head-26": {"pos_att_type": ["p2c"], "hidden_size": 78, "num_attention_heads": 3},
         "biased-input": {"position_biased_input": True, "type_vocab_size": 2, "embedding_size": 20},
         "not-relative": {"relative_attention": False, "norm_rel_ebd": "none", "position_biased_input": True},
         "one-layer": {"num_hidden_layers": 1, "hidden_act": "relu"},
         "convolution": {"conv_kernel_size": 3, "conv_act": "gelu"},
         "convolution-in-groups": {"conv_kernel_size": 5, "conv_groups": 4},
         "convolution-one-layer": {"conv_kernel_size": 7, "num_hidden_layers": 1, "relative_attention": False,
                                   "norm_rel_ebd": "none", "position_biased_input": True},
         "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        classifier=t.DebertaV2ForSequenceClassification),
    "t5": Family(
        t.T5EncoderModel, t.T5Config, T5, {**T5_VARIANTS, "relu": {}}, position_ids=False, tokens=t.T5ForTokenClassification),
    "mt5": Family(
        t.MT5EncoderModel, t.MT5Config, T5, {"gated-gelu": {}, **T5_VARIANTS, "relu": {"feed_forward_proj": "relu"}},
        position_ids=False, tokens=t.MT5ForTokenClassification),
    "roformer": Family(
        t.RoFormerModel, t.RoFormerConfig, {**BERT, "embedding_size": 20},
        {**BERT_VARIANTS, "same-width": {"embedding_size": 48}}, position_ids=False, constants="embed_positions",
        classifier=t.RoFormerForSequenceClassification),
    "data2vec-text": Family(t.Data2VecTextModel, t.Data2VecTextConfig, BERT, BERT_VARIANTS, counted=True, pooler=True,
                            classifier=t.Data2VecTextForSequenceClassification),
    "ernie": Family(t.ErnieModel, t.ErnieConfig, BERT,
                    {**BERT_VARIANTS, "tasks": {"use_task_id": True, "task_type_vocab_size": 4},
                     "tasks-f16": {"use_task_id": True, "save": "float16"}}, pooler=True,
                    classifier=t.ErnieForSequenceClassification),
    "rembert": Family(
        t.RemBertModel, t.RemBertConfig, {**BERT, "input_embedding_size": 20, "output_embedding_size": 28},
        {**BERT_VARIANTS, "same-width": {"input_embedding_size": 48}}, pooler=True,
        classifier=t.RemBertForSequenceClassification),
    "esm": Family(
        t.EsmModel, t.EsmConfig, ESM,
        {"plain": {}, "no-dropout": {"token_dropout": False}, "norm-before": {"emb_layer_norm_before": True},
         "head-26": {"hidden_size": 78, "num_attention_heads": 3}, "one-layer": {"num_hidden_layers": 1},
         "theta": {"rope_theta": 50.0, "layer_norm_eps": 1e-5}, "one-head": {"num_attention_heads": 1},
         "frequencies": {"save": "float16", "reload": True},
         "bf16-shards": {"save": "bfloat16", "shard": "20KB", "reload": True}},
        position_ids=False, pooler=True, blank=True, masks=7, classifier=t.EsmForSequenceClassification),
    "bart": Family(t.BartModel, t.BartConfig, BART, BART_VARIANTS, position_ids=False, row_positions=2, encoder=encoder_of),
    "mbart": Family(t.MBartForConditionalGeneration, t.MBartConfig, BART, BART_VARIANTS, position_ids=False, row_positions=2,
                    encoder=encoder_of),
    # Its positions are not saved.
    "marian": Family(t.MarianMTModel, t.MarianConfig, {**BART, "reload": True}, BART_VARIANTS, position_ids=False,
                     row_positions=0, encoder=encoder_of),
    # Its positions are saved, so these are random ones.
    "pegasus": Family(t.PegasusForConditionalGeneration, t.PegasusConfig, BART, BART_VARIANTS, position_ids=False,
                      row_positions=0, encoder=encoder_of),
    "m2m_100": Family(t.M2M100Model, t.M2M100Config, BART, {**BART_VARIANTS, "unscaled": {"scale_embedding": False}},
                      counted=True, encoder=encoder_of),
    "modernbert": Family(
        t.ModernBertModel, t.ModernBertConfig,
        {"vocab_size": 60, "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 4, "intermediate_size": 96,
         "max_position_embeddings": 40, "local_attention": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
         "cls_token_id": 1, "sep_token_id": 1},
        {"plain": {}, "biases": {"attention_bias": True, "mlp_bias": True, "norm_bias": True},
         "head-26": {"hidden_size": 78, "num_attention_heads": 3}, "one-layer": {"num_hidden_layers": 1},
         "narrow": {"local_attention": 2, "global_attn_every_n_layers": 2, "local_rope_theta": 500.0},
         "silu": {"hidden_activation": "silu", "intermediate_size": 77},
         "sans-pos": with_keys(position_embedding_type="sans_pos"),
         "stretched": {"rope_parameters": {kind: {**LINEAR, "rope_theta": theta} for kind, theta in
                                           (("full_attention", 90.0), ("sliding_attention", 40.0))}},
         "default-thetas": without_rotation(),
         "rope-scaling": without_rotation(global_rope_theta=90.0, rope_scaling=LINEAR),
         "rope-scaling-theta": with_keys(rope_scaling={**LINEAR, "rope_theta": 60.0}),
         "yarn": with_keys(rope_scaling={**YARN, "truncate": False}),
         "two-scalings": with_keys(rope_parameters={"full_attention": {**YARN, "rope_theta": 90.0},
                                                    "sliding_attention": {**LLAMA3, "rope_theta": 40.0}}),
         "silu-classifier": {"model": t.ModernBertForSequenceClassification, "num_labels": 5, "classifier_activation": "silu"},
         "mean-classifier": {"model": t.ModernBertForSequenceClassification, "num_labels": 5, "classifier_pooling": "mean"},
         "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        classifier=t.ModernBertForSequenceClassification),
    "nomic_bert": Family(
        functools.partial(t.NomicBertModel, add_pooling_layer=True), t.NomicBertConfig, {**BERT, "type_vocab_size": 2},
        {"silu": {}, "gelu": {"hidden_act": "gelu", "intermediate_size": 77},
         "head-26": {"hidden_size": 78, "num_attention_heads": 3, "head_dim": 26},
         "own-head-width": {"head_dim": 10}, "one-layer": {"num_hidden_layers": 1, "hidden_act": "quick_gelu"},
         "theta": {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}, "layer_norm_eps": 1e-3},
         "stretched": {"rope_parameters": {"rope_type": "linear", "rope_theta": 50.0, "factor": 3.0}},
         **ROTATIONS, "published": {"config_json": published_nomic},
         "published-geglu": {"hidden_act": "gelu", "layer_norm_eps": 1e-3, "config_json": published_nomic},
         "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        pooler=True, classifier=t.NomicBertForSequenceClassification),
    "gte": Family(
        functools.partial(t.GteModel, add_pooling_layer=True), t.GteConfig, BERT,
        {"gelu": {}, "no-types": {"type_vocab_size": 0, "hidden_act": "silu"},
         "head-26": {"hidden_size": 78, "num_attention_heads": 3, "intermediate_size": 77},
         "own-head-width": {"head_dim": 10}, "one-layer": {"num_hidden_layers": 1, "hidden_act": "tanh"},
         "theta": {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}, "layer_norm_eps": 1e-3},
         "stretched": {"rope_parameters": {"rope_type": "linear", "rope_theta": 50.0, "factor": 3.0}},
         **ROTATIONS, "published": {"config_json": published_gte},
         "published-ntk": {"rope_parameters": NTK_ROTATION, "config_json": scaled_gte},
         "f16-shards": {"save": "float16", "shard": "20KB"}},
        pooler=True, classifier=t.GteForSequenceClassification),
    "jina_embeddings_v3": Family(
        t.JinaEmbeddingsV3Model, t.JinaEmbeddingsV3Config, {**BERT, "type_vocab_size": 1},
        {"gelu": {}, "relu": {"hidden_act": "relu", "intermediate_size": 77}, "epsilon": {"layer_norm_eps": 1e-3},
         "head-26": {"hidden_size": 78, "num_attention_heads": 3}, "one-layer": {"num_hidden_layers": 1},
         "theta": {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}},
         "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        pooler=True, classifier=t.JinaEmbeddingsV3ForSequenceClassification),
    "qwen3": Family(t.Qwen3Model, t.Qwen3Config, {**CAUSAL, "head_dim": 16}, CAUSAL_VARIANTS | BIASES | QWEN_VARIANTS,
                    classifier=t.Qwen3ForSequenceClassification, blank=True),
    "qwen2": Family(t.Qwen2Model, t.Qwen2Config, CAUSAL, CAUSAL_VARIANTS | QWEN_VARIANTS,
                    classifier=t.Qwen2ForSequenceClassification, blank=True),
    "llama": Family(t.LlamaModel, t.LlamaConfig, CAUSAL,
                    CAUSAL_VARIANTS | BIASES | {"more-biases": {"attention_bias": True, "mlp_bias": True}},
                    classifier=t.LlamaForSequenceClassification, blank=True),
    "mistral": Family(t.MistralModel, t.MistralConfig, {**CAUSAL, "sliding_window": None}, CAUSAL_VARIANTS | ONE_WINDOW,
                      classifier=t.MistralForSequenceClassification, blank=True),
    "eurobert": Family(
        t.EuroBertModel, t.EuroBertConfig, CAUSAL,  # whose classifier scores each token, "late"
        {name: variant for name, variant in CAUSAL_VARIANTS.items() if name != "bidirectional"} | BIASES
        | {"first-token-classifier": {"model": t.EuroBertForSequenceClassification, "num_labels": 5,
                                      "classifier_pooling": "bos"},
           "mean-classifier": {"model": t.EuroBertForSequenceClassification, "num_labels": 5, "classifier_pooling": "mean"}},
        classifier=t.EuroBertForSequenceClassification, blank=True),
    "gemma3_text": Family(
        t.Gemma3TextModel, t.Gemma3TextConfig, GEMMA,
        {"plain": {}, "causal": {"use_bidirectional_attention": False}, "odd-window": {"sliding_window": 7},
         "one-layer": {"num_hidden_layers": 1, "layer_types": ["full_attention"]},
         "windows-only": {"layer_types": ["sliding_attention"] * 4}, "one-head": {"num_key_value_heads": 1},
         "all-heads": {"num_key_value_heads": 4}, "silu": {"hidden_activation": "silu", "intermediate_size": 77},
         "biases": {"attention_bias": True}, "pattern": without_keys("layer_types", sliding_window_pattern=2),
         "default-thetas": without_rotation(),
         "thetas": without_rotation(rope_theta=900.0, rope_local_base_freq=40.0),
         "rope-scaling": without_rotation(rope_theta=900.0, rope_scaling=LINEAR),
         "two-scalings": with_keys(rope_parameters={kind: {**YARN, "rope_theta": theta} for kind, theta in GEMMA_THETAS}),
         "f16-file": {"save": "float16"}, "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        classifier=t.Gemma3TextForSequenceClassification, gamma=0.3, blank=True),
    "vit": Family(t.ViTModel, t.ViTConfig, PATCHES, VIT_VARIANTS, text=False, inputs=image, pooler=True,
                  features=patches, classifier=t.ViTForImageClassification),
    "deit": Family(t.DeiTModel, t.DeiTConfig, PATCHES, VIT_VARIANTS, text=False, inputs=image, pooler=True,
                   features=patches, classifier=t.DeiTForImageClassification),
    "clip-vision": Family(
        t.CLIPModel, towers(t.CLIPConfig, "vision", projection_dim=20), {**PATCHES, "num_channels": 3},
        TOWER_VARIANTS | IMAGE_VARIANTS,
        text=False, inputs=tower_images, pooler=True, pixels="pixel_values", options=",tower=vision", encoder=VisionTower),
    "clip-text": Family(
        t.CLIPModel, towers(t.CLIPConfig, "text", projection_dim=20), CLIP_TEXT,
        {**TOWER_VARIANTS, "old-end": {"eos_token_id": 2}}, pooler=True, pooled="end", options=",tower=text", encoder=TextTower),
    "siglip-vision": Family(
        t.SiglipModel, towers(t.SiglipConfig, "vision"), {**PATCHES, "num_channels": 3}, TOWER_VARIANTS | IMAGE_VARIANTS,
        text=False, inputs=tower_images, pooler=True, pixels="pixel_values", options=",tower=vision",
        encoder=lambda model: model.vision_model, classifier=t.SiglipForImageClassification),
    "siglip-text": Family(
        t.SiglipModel, towers(t.SiglipConfig, "text"), BERT, {**TOWER_VARIANTS, "projection": {"projection_size": 20}},
        pooler=True, pooled="last", options=",tower=text", encoder=TextTower),
    "dinov2": Family(t.Dinov2Model, t.Dinov2Config, DINO, DINO_VARIANTS, text=False, inputs=image, features=patches,
                     classifier=t.Dinov2ForImageClassification),
    "dinov2_with_registers": Family(t.Dinov2WithRegistersModel, t.Dinov2WithRegistersConfig, DINO, DINO_VARIANTS,
                                    text=False, inputs=image, features=patches,
                                    classifier=t.Dinov2WithRegistersForImageClassification),
    "whisper": Family(
        t.WhisperModel, t.WhisperConfig,
        {"vocab_size": 60, "d_model": 48, "encoder_attention_heads": 4, "encoder_layers": 3, "encoder_ffn_dim": 96,
         "decoder_attention_heads": 4, "decoder_layers": 1, "decoder_ffn_dim": 16, "num_mel_bins": 8,
         "max_source_positions": 15, "max_target_positions": 8, "pad_token_id": 1, "bos_token_id": 1,
         "eos_token_id": 1, "decoder_start_token_id": 1},
        {"plain": {}, "head-26": {"d_model": 78, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
         "one-layer": {"encoder_layers": 1}, "relu": {"activation_function": "relu"},
         "one-head": {"encoder_attention_heads": 1}, "f16-shards": {"save": "float16", "shard": "20KB"}},
        text=False, inputs=mel, encoder=lambda model: model.encoder,
        positions=lambda model: model.encoder.embed_positions.weight, classifier=t.WhisperForAudioClassification),
    "wav2vec2": Family(t.Wav2Vec2Model, t.Wav2Vec2Config, AUDIO, AUDIO_VARIANTS, text=False, inputs=audio,
                       features=before_norm, classifier=t.Wav2Vec2ForSequenceClassification),
    "hubert": Family(t.HubertModel, t.HubertConfig, AUDIO, AUDIO_VARIANTS, text=False, inputs=audio,
                       features=before_norm, classifier=t.HubertForSequenceClassification),
}
