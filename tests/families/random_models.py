"""Small random models of every family, as transformers makes and saves them, served and compared layer by layer."""
import dataclasses
import pathlib
import sys
import tempfile
import types
import typing

import numpy as np
import torch
import torch.distributed

if not hasattr(torch, "compile"):  # what the library needs of torch that Debian 12's lacks
    torch.compile = lambda function=None, **_: function if function else (lambda f: f)
    torch.distributed.fsdp = types.ModuleType("torch.distributed.fsdp")
    torch.distributed.fsdp.FullyShardedDataParallel = type(None)
    sys.modules["torch.distributed.fsdp"] = torch.distributed.fsdp
    plain_layer_norm = torch.nn.LayerNorm.__init__

    def layer_norm(self, *arguments, bias=True, **options):
        plain_layer_norm(self, *arguments, **options)
        if not bias:
            self.register_parameter("bias", None)

    torch.nn.LayerNorm.__init__ = layer_norm

plain_softmax = torch.nn.functional.softmax


def softmax(scores, dim=None, _stacklevel=3, dtype=None):
    """Without the library's cast to float32, which turns a row of the lowest float64 into NaN."""
    return plain_softmax(scores, dim, _stacklevel, None if scores.dtype == torch.float64 else dtype)


torch.nn.functional.softmax = softmax

import transformers as t  # noqa: E402

from attendant.v1 import encoder_service_pb2 as pb  # noqa: E402
from serving import encoder, serve, to_array, to_tensor  # noqa: E402



def classify_patches(self, pixel_values):
    """Of the class token and the patches, as in later versions; this one counts registers among the patches."""
    states = self.dinov2_with_registers(pixel_values).last_hidden_state
    patches_alone = states[:, 1 + self.config.num_register_tokens:]
    return types.SimpleNamespace(logits=self.classifier(torch.cat([states[:, 0], patches_alone.mean(dim=1)], dim=1)))


t.Dinov2WithRegistersForImageClassification.forward = classify_patches
t.logging.set_verbosity_error()  # of what it does instead of what it was asked

BOUND = 5e-5  # or 1.5 times the error that torch's own float32 makes
LOWEST_COSINES = {"bf16": 0.9995, "int8": 0.995}  # of any token's last hidden state, in any family
LENGTHS = (9, 1, 21, 14)


@dataclasses.dataclass
class Family:
    model: type
    config: type
    common: dict
    variants: dict  # name -> what differs
    text: bool = True
    position_ids: bool = True  # the library takes them; else it counts indices in the row
    first_position: int = 0    # of the first kept token; more than 0: kept tokens are counted
    pooler: bool = False
    inputs: typing.Callable = None  # of families that read no text: config -> keyword arguments for one sequence
    encoder: typing.Callable = lambda model: model
    features: typing.Callable = None  # model -> (module, whether its input or output is what we take as features)
    positions: typing.Callable = None  # model -> what to take off the rows that enter layer 0 to have features
    classifier: type = None  # the model with a head that scores classes
    blank: bool = False  # tokens look at their neighbours: padding and holes are given the id 0, which says nothing
    gamma: float = 1  # of norms; less where they do not keep sums from growing
    alone: bool = False  # what the library answers depends on the padding: it is given each sequence without


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

FAMILIES = {
    "bert": Family(t.BertModel, t.BertConfig, BERT, BERT_VARIANTS, pooler=True,
                   classifier=t.BertForSequenceClassification),
    "roberta": Family(t.RobertaModel, t.RobertaConfig, BERT, BERT_VARIANTS, first_position=2, pooler=True,
                      classifier=t.RobertaForSequenceClassification),
    "electra": Family(t.ElectraModel, t.ElectraConfig, {**BERT, "embedding_size": 20},
                      {**BERT_VARIANTS, "same-width": {"embedding_size": 48}},
                      classifier=t.ElectraForSequenceClassification),
    "distilbert": Family(
        t.DistilBertModel, t.DistilBertConfig,
        {"vocab_size": 60, "dim": 48, "n_heads": 4, "n_layers": 3, "hidden_dim": 96, "max_position_embeddings": 40},
        {"plain": {}, "head-26": {"dim": 78, "n_heads": 3}, "one-layer": {"n_layers": 1},
         "relu": {"activation": "relu"}, "sinusoids": {"sinusoidal_pos_embds": True}, "f16-file": {"save": "float16"}},
        position_ids=False, classifier=t.DistilBertForSequenceClassification),
    "albert": Family(
        t.AlbertModel, t.AlbertConfig, {**BERT, "embedding_size": 20},
        {**BERT_VARIANTS, "two-groups": {"num_hidden_layers": 5, "num_hidden_groups": 2},
         "own-layers": {"num_hidden_groups": 3}, "same-width": {"embedding_size": 48}}, pooler=True,
        classifier=t.AlbertForSequenceClassification),
    "mpnet": Family(t.MPNetModel, t.MPNetConfig, BERT, BERT_VARIANTS, first_position=2, pooler=True,
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
        t.T5EncoderModel, t.T5Config,
        {"vocab_size": 60, "d_model": 48, "d_kv": 12, "num_heads": 4, "num_layers": 3, "d_ff": 96},
        {"relu": {}, "gated-gelu": {"feed_forward_proj": "gated-gelu"}, "gated-silu": {"feed_forward_proj": "gated-silu"},
         "wide-heads": {"d_kv": 26, "num_heads": 3}, "narrow-heads": {"d_kv": 5, "d_ff": 77},
         "few-buckets": {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 10},
         "one-layer": {"num_layers": 1}, "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        position_ids=False),
    "modernbert": Family(
        t.ModernBertModel, t.ModernBertConfig,
        {"vocab_size": 60, "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 4, "intermediate_size": 96,
         "max_position_embeddings": 40, "local_attention": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
         "cls_token_id": 1, "sep_token_id": 1, "reference_compile": False, "attn_implementation": "eager"},
        {"plain": {}, "biases": {"attention_bias": True, "mlp_bias": True, "norm_bias": True},
         "head-26": {"hidden_size": 78, "num_attention_heads": 3}, "one-layer": {"num_hidden_layers": 1},
         "narrow": {"local_attention": 2, "global_attn_every_n_layers": 2, "local_rope_theta": 500.0},
         "silu": {"hidden_activation": "silu", "intermediate_size": 77},
         "mean-classifier": {"model": t.ModernBertForSequenceClassification, "num_labels": 5, "classifier_pooling": "mean"},
         "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        classifier=t.ModernBertForSequenceClassification),
    "vit": Family(t.ViTModel, t.ViTConfig, PATCHES, VIT_VARIANTS, text=False, inputs=image, pooler=True,
                  features=patches, classifier=t.ViTForImageClassification),
    "deit": Family(t.DeiTModel, t.DeiTConfig, PATCHES, VIT_VARIANTS, text=False, inputs=image, pooler=True,
                   features=patches, classifier=t.DeiTForImageClassification),
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


def make(family: Family, variant: dict, folder: pathlib.Path):
    """A model with weights that matter, saved; returned as it was saved."""
    options = {**family.common, **variant}
    save, shard = options.pop("save", "float32"), options.pop("shard", "1GB")
    model = options.pop("model", family.model)(family.config(**options)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2:
                embedding = "embed" in name or "relative" in name or "shared" in name
                parameter.normal_(0, 1 if embedding else parameter[0].numel() ** -0.5)
            elif "norm" in name.lower() and name.endswith("weight") or "lambda" in name:
                parameter.normal_(family.gamma, 0.2 * family.gamma)
            else:
                parameter.normal_(0, 0.3)
        if family.blank:
            model.get_input_embeddings().weight[0] = 0
        # What is not saved, such as rotary frequencies, is not rounded either.
        buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        model.to(getattr(torch, save)).save_pretrained(folder, max_shard_size=shard)
        model.float()
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    return model


def masks():
    """Which tokens are kept, [B, S], in three ways."""
    longest = max(LENGTHS) + 3
    index, lengths = np.arange(longest), np.array(LENGTHS)[:, None]
    holed = index < lengths
    holed[:, 2::5] = False
    return {"right": (index < lengths), "left": (index >= longest - lengths), "holed": holed}


def each_alone(model, arguments: dict):
    """The arguments of each sequence without its padding, and where it is in its row."""
    for row, kept in enumerate(arguments["attention_mask"].numpy().astype(bool)):
        span = slice(int(kept.argmax()), len(kept) - int(kept[::-1].argmax()))
        for part in model.modules():  # a short sequence changes it for good
            if hasattr(part, "set_attention_type"):
                part.set_attention_type(model.config.attention_type)
                break
        yield {key: value[row:row + 1, span] for key, value in arguments.items()}, row, span


def run_alone(family: Family, model, arguments: dict, dtype) -> tuple:
    """As run_library; rows of padding are zeros."""
    mask = arguments["attention_mask"]
    states, pooled = None, []
    for own_arguments, row, span in each_alone(model, arguments):
        own, vector = run_library(dataclasses.replace(family, alone=False), model, own_arguments, dtype)
        states = states or [np.zeros((*mask.shape, one.shape[2])) for one in own]
        for padded, one in zip(states, own):
            padded[row, span] = one[0, :span.stop - span.start]
        pooled.append(vector)
    return states, np.concatenate(pooled) if family.pooler else None


def run_library(family: Family, model, arguments: dict, dtype) -> list:
    """[hidden states entering layer 0, after each layer but the last, at the end], and the pooled vectors or None."""
    if family.alone:
        return run_alone(family, model, arguments, dtype)
    typed = {key: value.to(dtype) if value.is_floating_point() else value for key, value in arguments.items()}
    with torch.no_grad():
        out = family.encoder(model.to(dtype))(**typed, output_hidden_states=True)
    states = [*out.hidden_states[:-1], out.last_hidden_state]
    pooled = getattr(out, "pooler_output", None) if family.pooler else None
    return [s.double().numpy() for s in states], None if pooled is None else pooled.double().numpy()


def ask(encode, name: str, layers: int, pooler: bool, **tensors) -> tuple:
    answer = encode(pb.EncodeRequest(model=name, intermediate_layers=range(layers - 1), return_pooled=pooler,
                                     **{key: to_tensor(value) for key, value in tensors.items()}))
    states = [to_array(layer.tensor) for layer in answer.intermediate] + [to_array(answer.hidden_states)]
    return states, to_array(answer.pooled) if pooler else None


def share_of_bound(exact, float32, served, kept) -> float:
    """The largest error, of any layer, over what is allowed of that layer."""
    worst = 0.0
    for a, b, c in zip(exact, float32, served, strict=True):
        allowed = max(BOUND, 1.5 * np.abs(a - b)[kept].max())
        error = np.abs(a - c)[kept].max()
        worst = max(worst, error / allowed if np.isfinite(error) else np.inf)
    return worst


def text_case(family: Family, config, mask: np.ndarray) -> tuple:
    """Token ids behind the mask: the arguments of the library, the tensors of a request."""
    ids = torch.randint(2, config.vocab_size, mask.shape)
    if family.blank:
        ids[~torch.from_numpy(mask)] = 0
    arguments = {"input_ids": ids, "attention_mask": torch.from_numpy(mask.astype(np.int64))}
    index = np.broadcast_to(np.arange(mask.shape[1]), mask.shape)
    if family.first_position:
        positions = np.where(mask, mask.cumsum(axis=1) - 1 + family.first_position, family.first_position - 1)
    else:
        positions = np.where(mask, index - mask.argmax(axis=1)[:, None], 0)
    if family.position_ids:
        arguments["position_ids"] = torch.from_numpy(positions)
    tensors = {"token_ids": ids.numpy(), "attention_mask": mask.astype(np.uint8)}
    if isinstance(config, t.DistilBertConfig):
        tensors["position_ids"] = np.ascontiguousarray(index)  # the library's own, from 0 whatever is kept
    return arguments, tensors


def compare_text(family: Family, model, encode, name: str) -> float:
    worst = 0.0
    for mask in masks().values():
        arguments, tensors = text_case(family, model.config, mask)
        exact, exact_pooled = run_library(family, model, arguments, torch.float64)
        float32, float32_pooled = run_library(family, model, arguments, torch.float32)
        # The poolers of the library take the first token, kept or not.
        pooler = family.pooler and bool(mask[:, 0].all())
        served, pooled = ask(encode, name, len(exact) - 1, pooler, **tensors)
        worst = max(worst, share_of_bound(exact[1:], float32[1:], served, mask))
        if pooler:
            worst = max(worst, share_of_bound([exact_pooled], [float32_pooled], [pooled], slice(None)))
    return worst


def compare_classes(family: Family, model, encode, name: str) -> float:
    """The scores of the model's head."""
    if family.text:
        arguments, tensors = text_case(family, model.config, masks()["right"])
    else:
        arguments = {key: torch.cat([family.inputs(model.config)[key] for _ in range(3)])
                     for key in family.inputs(model.config)}
        body = getattr(model, model.base_model_prefix, model)
        tensors = {"hidden_states": run_library(family, body, arguments, torch.float64)[0][0].astype(np.float32)}
    scores = []
    for dtype in (torch.float64, torch.float32):
        typed = {key: value.to(dtype) if value.is_floating_point() else value for key, value in arguments.items()}
        model.to(dtype)
        cases = each_alone(model, typed) if family.alone else [(typed, 0, None)]
        with torch.no_grad():
            scores.append(torch.cat([model(**one).logits for one, _, _ in cases]).double().numpy())
    answer = encode(pb.EncodeRequest(model=name, omit_hidden_states=True, return_pooled=True, pooling=pb.CLASSIFIER,
                                     **{key: to_tensor(value) for key, value in tensors.items()}))
    return share_of_bound(scores[:1], scores[1:], [to_array(answer.pooled)], slice(None))


def lowest_cosine(family: Family, model, encode, name: str) -> float:
    """Of any token's last hidden state."""
    mask = masks()["right"]
    if family.text:
        arguments, tensors = text_case(family, model.config, mask)
        exact, _ = run_library(family, model, arguments, torch.float64)
        rows = exact[-1][mask]
    else:
        exact = [run_library(family, model, family.inputs(model.config), torch.float64)[0] for _ in range(3)]
        tensors = {"hidden_states": np.concatenate([states[0] for states in exact]).astype(np.float32)}
        mask = np.ones(tensors["hidden_states"].shape[:2], bool)
        rows = np.concatenate([states[-1] for states in exact])[mask]
    served = ask(encode, name, 1, False, **tensors)[0][-1][mask]
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(served, axis=1)
    return float(((rows * served).sum(axis=1) / lengths).min())


def take_features(family: Family, model, inputs: list):
    """What the server's front makes of the rows that enter layer 0, [B, S, E]; None if the model has no front."""
    model = model.to(torch.float64)
    if family.positions:
        own = family.positions(model).detach().numpy()
        return np.concatenate([run_library(family, model, one, torch.float64)[0][0] - own for one in inputs])
    found = family.features(model)
    if found is None:
        return None
    module, side = found
    taken = []
    hook = module.register_forward_hook(
        lambda _, came, left: taken.append((came[0] if side == "input" else left).detach().clone().numpy()))
    for one in inputs:
        run_library(family, model, one, torch.float64)
    hook.remove()
    return np.concatenate(taken)


def compare_signals(family: Family, model, encode, name: str) -> float:
    """Each sequence by itself in the library, all of them in one padded request."""
    inputs = [family.inputs(model.config) for _ in range(3)]
    exact = [run_library(family, model, one, torch.float64) for one in inputs]
    float32 = [run_library(family, model, one, torch.float32) for one in inputs]
    entering = np.concatenate([states[0] for states, _ in float32])
    padded = np.pad(entering, ((0, 0), (0, 5), (0, 0))).astype(np.float32)
    mask = np.pad(np.ones(entering.shape[:2], np.uint8), ((0, 0), (0, 5)))
    served, pooled = ask(encode, name, len(exact[0][0]) - 1, family.pooler, hidden_states=padded, attention_mask=mask)
    answers = [(served, pooled)]
    features = take_features(family, model, inputs)
    if features is not None:
        answers.append(ask(encode, name, len(exact[0][0]) - 1, family.pooler, features=features.astype(np.float32)))
    return max(worst_of_signals(family, exact, float32, *answer) for answer in answers)


def worst_of_signals(family: Family, exact, float32, served, pooled) -> float:
    worst = 0.0
    for i, ((states, vector), (states32, vector32)) in enumerate(zip(exact, float32)):
        own = [layer[i:i + 1, :states[0].shape[1]] for layer in served]
        worst = max(worst, share_of_bound(states[1:], states32[1:], own, slice(None)))
        if family.pooler:
            worst = max(worst, share_of_bound([vector], [vector32], [pooled[i:i + 1]], slice(None)))
    return worst


def compare_family(program: str, family: Family) -> tuple:
    """Variant -> worst error, as a share of its bound; compute type -> lowest cosine."""
    variants = dict(family.variants)
    if family.classifier:
        variants["classifier"] = {"model": family.classifier, "num_labels": 5}
    first = next(iter(variants))
    with tempfile.TemporaryDirectory() as scratch:
        folders = {variant: pathlib.Path(scratch) / variant for variant in variants}
        models = {variant: make(family, options, folders[variant]) for variant, options in variants.items()}
        sources = folders | {dtype: f"{folders[first]},dtype={dtype},emulate=true" for dtype in LOWEST_COSINES}
        with serve(program, sources, "--max-request-tokens", "512", "--max-batch-tokens", "512") as port:
            encode = encoder(port)
            one = compare_text if family.text else compare_signals
            shares = {variant: (compare_classes if "model" in variants[variant] else one)(family, model, encode, variant)
                      for variant, model in models.items()}
            return shares, {dtype: lowest_cosine(family, models[first], encode, dtype) for dtype in LOWEST_COSINES}


def compare(program: str, only=()) -> dict:
    torch.manual_seed(5)
    figures = {"families.passed": 0, "families.failed": 0, "configurations.passed": 0, "worst_error.f32": 0.0,
               **{f"lowest_cosine.{dtype}": 1.0 for dtype in LOWEST_COSINES}}
    print(f"{'family':24}{'configurations':>16}{'agree':>8}{'worst error / bound':>22}  {'of':14}"
          + "".join(f"{'cosine ' + dtype:>14}" for dtype in LOWEST_COSINES))
    for name, family in FAMILIES.items():
        if only and name not in only:
            continue
        shares, cosines = compare_family(program, family)
        agree = sum(share <= 1 for share in shares.values())
        worst = max(shares, key=shares.get)
        print(f"{name:24}{len(shares):16}{agree:8}{shares[worst]:22.3g}  {worst:14}"
              + "".join(f"{cosine:14.6f}" for cosine in cosines.values()), flush=True)
        passed = agree == len(shares) and all(cosines[dtype] >= least for dtype, least in LOWEST_COSINES.items())
        figures["families.passed" if passed else "families.failed"] += 1
        figures["configurations.passed"] += int(agree)  # of numpy, which JSON does not know
        figures["worst_error.f32"] = max(figures["worst_error.f32"], float(shares[worst]))
        for dtype, cosine in cosines.items():
            figures[f"lowest_cosine.{dtype}"] = min(figures[f"lowest_cosine.{dtype}"], cosine)
    return figures


if __name__ == "__main__":
    print(compare(sys.argv[1], sys.argv[2:]))
