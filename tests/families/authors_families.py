"""Families that PyPI's transformers does not have, or not whole, by the formulas of their authors' code: NomicBERT with
experts (github.com/nomic-ai/contrastors) and NeoBERT (github.com/chandar-lab/NeoBERT)."""
import json
import pathlib

import huggingface_hub
import torch
from torch import nn
from torch.nn import functional
from transformers.modeling_outputs import SequenceClassifierOutput

from family import Family
from formula_families import Config


def rotate(x: torch.Tensor, theta: float, width: int, interleaved: bool) -> torch.Tensor:
    """Turns the first `width` columns of heads [B, S, H, D] by the tokens' places in their row."""
    pairs = torch.arange(0, width, 2, dtype=torch.float64)
    angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * theta ** (-pairs / width)
    cos, sin = angles.cos().to(x.dtype)[:, None], angles.sin().to(x.dtype)[:, None]
    turned, rest = x[..., :width], x[..., width:]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else turned.chunk(2, dim=-1)
    a, b = a * cos - b * sin, a * sin + b * cos
    turned = torch.stack([a, b], -1).flatten(-2) if interleaved else torch.cat([a, b], -1)
    return torch.cat([turned, rest], -1)


def attend(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Attention of heads [B, S, H, D], to the keys that the mask [B, S] keeps; heads are side by side in the result."""
    scores = torch.einsum("bqhd,bkhd->bhqk", queries, keys) / queries.shape[-1] ** 0.5
    scores = scores.masked_fill(mask[:, None, None, :] == 0, -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), values).flatten(2)


def save(model: nn.Module, state: dict, folder: pathlib.Path, max_shard_size: str, config: dict) -> None:
    folder.mkdir()
    huggingface_hub.save_torch_state_dict(state, folder, max_shard_size=max_shard_size)
    (folder / "config.json").write_text(json.dumps({"architectures": [type(model).__name__], **config}))


class Experts(nn.Module):
    """The matrices of all experts, one after the other; `w2` is not transposed."""

    def __init__(self, config: Config):
        super().__init__()
        rows = config.num_experts * config.n_inner
        self.mlp = nn.ParameterDict({name: nn.Parameter(torch.empty(rows, config.n_embd)) for name in ("w1", "w2")})
        self.bias = nn.Parameter(torch.empty(config.n_embd))


class Mixture(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.router = nn.ModuleDict({"layer": nn.Linear(config.n_embd, config.num_experts, bias=False)})
        self.experts = Experts(config)
        self.config = config

    def expert(self, number: int, x: torch.Tensor) -> torch.Tensor:
        first, second = (matrix.unflatten(0, (-1, self.config.n_inner))[number] for matrix in self.experts.mlp.values())
        return functional.gelu(x @ first.T) @ second

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.flatten(0, 1)
        probabilities = self.router["layer"](rows).softmax(-1)
        order = probabilities.argsort(dim=-1, descending=True, stable=True)[:, :self.config.moe_top_k]
        chosen = torch.zeros_like(probabilities).scatter(-1, order, 1)
        made = torch.stack([self.expert(e, rows) for e in range(self.config.num_experts)], 1)
        return (torch.einsum("re,rec->rc", probabilities * chosen, made) + self.experts.bias).view_as(x)


class FeedForward(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.fc1 = nn.Linear(config.n_embd, config.n_inner, bias=config.mlp_fc1_bias)
        self.fc2 = nn.Linear(config.n_inner, config.n_embd, bias=config.mlp_fc2_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(functional.gelu(self.fc1(x)))


class NomicLayer(nn.Module):
    def __init__(self, config: Config, number: int):
        super().__init__()
        width = config.n_embd
        self.attn = nn.ModuleDict({"Wqkv": nn.Linear(width, 3 * width, bias=config.qkv_proj_bias),
                                   "out_proj": nn.Linear(width, width, bias=config.qkv_proj_bias)})
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=config.layer_norm_epsilon) for _ in range(2))
        has_experts = config.num_experts > 0 and number % config.moe_every_n_layers == 1
        self.mlp = Mixture(config) if has_experts else FeedForward(config)
        self.config = config

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        config = self.config
        queries, keys, values = self.attn["Wqkv"](x).unflatten(-1, (3, config.n_head, -1)).unbind(2)
        width = int(queries.shape[-1] * config.rotary_emb_fraction)
        queries, keys = (rotate(y, config.rotary_emb_base, width, config.rotary_emb_interleaved) for y in (queries, keys))
        x = self.norm1(x + self.attn["out_proj"](attend(queries, keys, values, mask)))
        return self.norm2(x + self.mlp(x))


class NomicBertModel(nn.Module):
    """Modules have the names of the published files."""

    def __init__(self, config: Config):
        super().__init__()
        width = config.n_embd
        self.embeddings = nn.ModuleDict({"word_embeddings": nn.Embedding(config.vocab_size, width),
                                         "token_type_embeddings": nn.Embedding(config.type_vocab_size, width)})
        self.emb_ln = nn.LayerNorm(width, eps=config.layer_norm_epsilon)
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList(NomicLayer(config, i) for i in range(config.n_layer))})
        self.config = config

    def forward(self, input_ids, attention_mask, output_hidden_states=True):
        types = self.embeddings["token_type_embeddings"].weight[0]
        states = [self.emb_ln(self.embeddings["word_embeddings"](input_ids) + types)]
        for layer in self.encoder["layers"]:
            states.append(layer(states[-1], attention_mask))
        return Config(hidden_states=states, last_hidden_state=states[-1])

    def save_pretrained(self, folder: pathlib.Path, max_shard_size: str) -> None:
        save(self, self.state_dict(), folder, max_shard_size, {
            "model_type": "nomic_bert", "prenorm": False, "causal": False, "use_rms_norm": None, "n_positions": 40,
            "rotary_scaling_factor": None, "moe_impl": "megablocks", "moe_normalize_expert_weights": False,
            "expert_choice_router": False, "num_shared_experts": 0, "ffn_div": 1.0, "router_aux_loss_coef": 0.1,
            **vars(self.config)})


class NeoBertLayer(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        width, inner = config.hidden_size, 8 * -(-(2 * config.intermediate_size // 3) // 8)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.wo = nn.Linear(width, width, bias=False)
        self.ffn = nn.ModuleDict({"w12": nn.Linear(width, 2 * inner, bias=False), "w3": nn.Linear(inner, width, bias=False)})
        self.attention_norm, self.ffn_norm = (nn.RMSNorm(width, config.norm_eps) for _ in range(2))
        self.heads = config.num_attention_heads

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # Queries, keys and values of each head are side by side.
        heads = self.qkv(self.attention_norm(x)).unflatten(-1, (self.heads, 3, -1))
        queries, keys, values = heads.unbind(3)
        queries, keys = (rotate(y, 10000.0, y.shape[-1], True) for y in (queries, keys))
        x = x + self.wo(attend(queries, keys, values, mask))
        gate, value = self.ffn["w12"](self.ffn_norm(x)).chunk(2, dim=-1)
        return x + self.ffn["w3"](functional.silu(gate) * value)


class NeoBERT(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.encoder = nn.Embedding(config.vocab_size, config.hidden_size)
        self.transformer_encoder = nn.ModuleList(NeoBertLayer(config) for _ in range(config.num_hidden_layers))
        self.layer_norm = nn.RMSNorm(config.hidden_size, config.norm_eps)
        self.config = config

    def forward(self, input_ids, attention_mask, output_hidden_states=True):
        states = [self.encoder(input_ids)]
        for layer in self.transformer_encoder:
            states.append(layer(states[-1], attention_mask))
        return Config(hidden_states=states, last_hidden_state=self.layer_norm(states[-1]))

    def save_pretrained(self, folder: pathlib.Path, max_shard_size: str) -> None:
        state = self.state_dict()
        if self.config.has_decoder:  # as it is published
            decoder = nn.Linear(self.config.hidden_size, self.config.vocab_size)
            state = {f"model.{name}": tensor for name, tensor in state.items()}
            state |= {"decoder.weight": decoder.weight.data, "decoder.bias": decoder.bias.data}
        save(self, state, folder, max_shard_size, neobert_config(self.config))


class NeoBERTForSequenceClassification(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.model = NeoBERT(config)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.config = config

    def forward(self, input_ids, attention_mask):
        first = self.model(input_ids, attention_mask).last_hidden_state[:, 0]
        return SequenceClassifierOutput(logits=self.classifier(torch.tanh(self.dense(first))))

    def save_pretrained(self, folder: pathlib.Path, max_shard_size: str) -> None:
        labels = {str(i): f"LABEL_{i}" for i in range(self.config.num_labels)}
        save(self, self.state_dict(), folder, max_shard_size, neobert_config(self.config) | {"id2label": labels})


def neobert_config(config: Config) -> dict:
    fields = {name: value for name, value in vars(config).items() if name not in ("has_decoder", "num_labels")}
    return {"model_type": "neobert", "max_length": 40, "dim_head": config.hidden_size // config.num_attention_heads,
            "embedding_init_range": 0.02, "decoder_init_range": 0.02, "pad_token_id": 0,
            "kwargs": {"trust_remote_code": True}, **fields}


NOMIC = {"vocab_size": 60, "type_vocab_size": 1, "n_embd": 48, "n_head": 4, "n_layer": 4, "n_inner": 96,
         "activation_function": "gelu", "layer_norm_epsilon": 1e-5, "rotary_emb_base": 10000.0, "rotary_emb_fraction": 1.0,
         "rotary_emb_interleaved": False, "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True,
         "num_experts": 8, "moe_every_n_layers": 2, "moe_top_k": 2}
NEOBERT = {"vocab_size": 60, "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 96,
           "norm_eps": 1e-5, "has_decoder": False}
FAMILIES = {
    "nomic_bert (experts)": Family(
        NomicBertModel, Config, NOMIC,
        # The compute types are compared with the first one: where a token chooses, rounding may change a choice near a tie,
        # and with it the token's result.
        {"all-experts": {"num_experts": 5, "moe_top_k": 5}, "published": {}, "one-expert": {"moe_top_k": 1},
         "every-third": {"moe_every_n_layers": 3, "num_experts": 3}, "odd": {"n_inner": 77},
         "no-biases": {"qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False},
         "head-26": {"n_embd": 78, "n_head": 3, "layer_norm_epsilon": 1e-3},
         "interleaved-half": {"rotary_emb_interleaved": True, "rotary_emb_fraction": 0.5, "rotary_emb_base": 50.0},
         "one-layer": {"n_layer": 1}, "dense": {"num_experts": 0},
         "f16-file": {"save": "float16"}, "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        position_ids=False),
    "neobert": Family(
        NeoBERT, Config, NEOBERT,
        {"plain": {}, "published": {"has_decoder": True}, "head-26": {"hidden_size": 78, "num_attention_heads": 3},
         "one-head": {"num_attention_heads": 1, "intermediate_size": 77}, "one-layer": {"num_hidden_layers": 1},
         "epsilon": {"norm_eps": 1e-3, "intermediate_size": 100}, "f16-file": {"save": "float16"},
         "bf16-shards": {"save": "bfloat16", "shard": "20KB"}},
        position_ids=False, classifier=NeoBERTForSequenceClassification),
}
