"""The families that PyPI's transformers does not have: Jina v2, by the formulas of its papers, and torch's own stack of
layers."""
import json
import math
import pathlib
import types

import huggingface_hub
import safetensors.torch
import torch
from torch import nn
from torch.nn import functional

from family import Family


class Config(types.SimpleNamespace):
    """A config made of keywords, like the library's."""


def alibi_slopes(heads: int) -> torch.Tensor:
    """Slopes [H]: 2^(-8 / H), its square, ...; beyond the largest power of two, every other slope of the next power of
    two follows."""
    full = 2 ** int(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / full) for i in range(full)]
    between = [2 ** (-4 * (i + 1) / full) for i in range(0, 2 * full, 2)]
    return torch.tensor(slopes + between[:heads - full], dtype=torch.float64)


class JinaLayer(nn.Module):
    """Modules have the names of the published files. The model for code has further norms, and another order of the
    gate."""

    def __init__(self, config: Config):
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size

        def norm():
            return nn.LayerNorm(width, eps=config.layer_norm_eps)

        own = {"query": nn.Linear(width, width), "key": nn.Linear(width, width), "value": nn.Linear(width, width)}
        if config.for_code:
            own |= {"layer_norm_q": norm(), "layer_norm_k": norm()}
            self.layer_norm_1, self.layer_norm_2 = norm(), norm()
            mlp = {"up_gated_layer": nn.Linear(width, 2 * inner, bias=False), "down_layer": nn.Linear(inner, width)}
        else:
            mlp = {"gated_layers": nn.Linear(width, 2 * inner, bias=False), "wo": nn.Linear(inner, width),
                   "layernorm": norm()}
        self.attention = nn.ModuleDict({"self": nn.ModuleDict(own), "output": nn.ModuleDict(
            {"dense": nn.Linear(width, width), "LayerNorm": norm()})})
        self.mlp = nn.ModuleDict(mlp)
        self.config = config

    def attend(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        own, heads = self.attention["self"], self.config.num_attention_heads
        queries, keys, values = own["query"](x), own["key"](x), own["value"](x)
        if self.config.for_code:
            queries, keys = own["layer_norm_q"](queries), own["layer_norm_k"](keys)
        queries, keys, values = (y.unflatten(2, (heads, -1)).transpose(1, 2) for y in (queries, keys, values))
        index = torch.arange(x.shape[1])
        distances = (index[:, None] - index).abs()
        scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[3])
        scores = scores - alibi_slopes(heads).to(x.dtype)[:, None, None] * distances
        scores = scores.masked_fill(mask[:, None, None, :] == 0, -math.inf)
        context = torch.softmax(scores, dim=3) @ values
        return self.attention["output"]["dense"](context.transpose(1, 2).flatten(2))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        activation = {"geglu": functional.gelu, "reglu": functional.relu}[self.config.feed_forward_type]
        x_attended = self.attention["output"]["LayerNorm"](self.attend(x, mask) + x)
        if self.config.for_code:
            x = self.layer_norm_1(x_attended + x)
            up, gate = self.mlp["up_gated_layer"](x).chunk(2, dim=2)
            return self.layer_norm_2(self.mlp["down_layer"](up * activation(gate)) + x)
        gate, up = self.mlp["gated_layers"](x_attended).chunk(2, dim=2)
        return self.mlp["layernorm"](self.mlp["wo"](activation(gate) * up) + x_attended)


class JinaBert(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        width = config.hidden_size
        self.embeddings = nn.ModuleDict({
            "word_embeddings": nn.Embedding(config.vocab_size, width),
            "token_type_embeddings": nn.Embedding(config.type_vocab_size, width),
            "LayerNorm": nn.LayerNorm(width, eps=config.layer_norm_eps)})
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(
            [JinaLayer(config) for _ in range(config.num_hidden_layers)])})
        self.pooler = nn.ModuleDict({"dense": nn.Linear(width, width)})
        self.config = config

    def forward(self, input_ids, attention_mask, output_hidden_states):
        types_of_zero = self.embeddings["token_type_embeddings"].weight[0]
        states = [self.embeddings["LayerNorm"](self.embeddings["word_embeddings"](input_ids) + types_of_zero)]
        for layer in self.encoder["layer"]:
            states.append(layer(states[-1], attention_mask))
        return Config(hidden_states=states, last_hidden_state=states[-1],
                      pooler_output=torch.tanh(self.pooler["dense"](states[-1][:, 0])))

    def save_pretrained(self, folder: pathlib.Path, max_shard_size: str) -> None:
        folder.mkdir()
        huggingface_hub.save_torch_state_dict(self.state_dict(), folder, max_shard_size=max_shard_size)
        fields = {key: value for key, value in vars(self.config).items() if key != "for_code"}
        (folder / "config.json").write_text(json.dumps(
            {"model_type": "bert", "architectures": ["JinaBertForMaskedLM"], "position_embedding_type": "alibi",
             "hidden_act": "gelu", "max_position_embeddings": 40, **fields}))


class TorchEncoder(nn.Module):
    """nn.TransformerEncoder with the state of each of its layers."""

    def __init__(self, config: Config):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            config.hidden_size, config.heads, config.inner, activation=config.activation, norm_first=config.norm_first,
            layer_norm_eps=config.epsilon, bias=config.bias, batch_first=True)
        norm = nn.LayerNorm(config.hidden_size, eps=config.epsilon, bias=config.bias) if config.norm_first else None
        self.stack = nn.TransformerEncoder(layer, config.layers, norm, enable_nested_tensor=False)
        self.config = config

    def forward(self, hidden_states, output_hidden_states):
        states = [hidden_states]
        for layer in self.stack.layers:
            states.append(layer(states[-1]))
        return Config(hidden_states=states, last_hidden_state=self.stack(hidden_states))

    def save_pretrained(self, folder: pathlib.Path, max_shard_size: str) -> None:
        folder.mkdir()
        safetensors.torch.save_file(self.stack.state_dict(), folder / "encoder.safetensors")
        (folder / "attendant.json").write_text(json.dumps(
            {"module": "nn.TransformerEncoder", "file": "encoder.safetensors", "num_heads": self.config.heads,
             "norm_first": self.config.norm_first, "activation": self.config.activation,
             "layer_norm_eps": self.config.epsilon}))


JINA = {"vocab_size": 60, "type_vocab_size": 2, "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3,
        "intermediate_size": 96, "layer_norm_eps": 1e-12, "feed_forward_type": "geglu"}
JINA_VARIANTS = {
    "plain": {},
    "head-26": {"hidden_size": 78, "num_attention_heads": 3},
    "six-heads": {"num_attention_heads": 6, "intermediate_size": 77},
    "one-layer": {"num_hidden_layers": 1},
    "one-head": {"num_attention_heads": 1},
    "relu": {"feed_forward_type": "reglu"},
    "epsilon": {"layer_norm_eps": 1e-3},
    "f16-file": {"save": "float16"},
    "bf16-shards": {"save": "bfloat16", "shard": "20KB"},
}
TORCH = {"hidden_size": 48, "heads": 4, "layers": 3, "inner": 96, "activation": "gelu", "norm_first": False,
         "epsilon": 1e-5, "bias": True}
TORCH_VARIANTS = {
    "norm-last": {},
    "norm-first": {"norm_first": True},
    "head-26": {"hidden_size": 78, "heads": 3},
    "first-head-26": {"hidden_size": 78, "heads": 3, "norm_first": True, "inner": 77},
    "relu": {"activation": "relu", "epsilon": 1e-3},
    "first-one-layer": {"norm_first": True, "layers": 1, "activation": "relu"},
    "no-bias": {"bias": False},
    "first-no-bias-f16": {"norm_first": True, "bias": False, "save": "float16"},
    "one-head-bf16": {"heads": 1, "save": "bfloat16"},
}


def rows(config: Config) -> dict:
    return {"hidden_states": torch.randn(1, 19, config.hidden_size)}


FAMILIES = {
    "jina_bert": Family(JinaBert, Config, {**JINA, "for_code": False}, JINA_VARIANTS, position_ids=False, pooler=True),
    "jina_bert (code)": Family(JinaBert, Config, {**JINA, "for_code": True}, JINA_VARIANTS, position_ids=False,
                               pooler=True),
    "nn.TransformerEncoder": Family(TorchEncoder, Config, TORCH, TORCH_VARIANTS, text=False, inputs=rows,
                                    features=lambda model: None),
}
