"""Folders of models that `bert` is no example of: one that takes features, and one that takes sequences in parts."""
import json
import pathlib

import numpy as np
from bert import write_safetensors

WIDTH = 8


def write_vit(folder: pathlib.Path) -> None:
    """Writes a ViT of 4 patches, before which the model puts a class token."""
    random = np.random.default_rng(3)
    weights = {}

    def add(name, *dimensions):
        weights[f"vit.{name}"] = (0.3 * random.standard_normal(dimensions)).astype(np.float32)

    add("embeddings.cls_token", 1, 1, WIDTH)
    add("embeddings.position_embeddings", 1, 5, WIDTH)
    layer = "encoder.layer.0"
    for name in ("attention.attention.query", "attention.attention.key", "attention.attention.value", "attention.output.dense"):
        add(f"{layer}.{name}.weight", WIDTH, WIDTH)
        add(f"{layer}.{name}.bias", WIDTH)
    for name, rows, columns in (("intermediate.dense", 12, WIDTH), ("output.dense", WIDTH, 12)):
        add(f"{layer}.{name}.weight", rows, columns)
        add(f"{layer}.{name}.bias", rows)
    for name in (f"{layer}.layernorm_before", f"{layer}.layernorm_after", "layernorm"):
        add(f"{name}.weight", WIDTH)
        add(f"{name}.bias", WIDTH)
    write_safetensors(folder / "model.safetensors", weights)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "vit", "hidden_size": WIDTH, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 12,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 8, "patch_size": 4, "qkv_bias": True}))


def write_clip_vision(folder: pathlib.Path, size: int = 8) -> None:
    """Writes the vision tower of a CLIP for square images in 4 patches of 4 x 4 pixels, before which the model puts a class token."""
    random = np.random.default_rng(5)
    layer = "encoder.layers.0"
    shapes = {"embeddings.class_embedding": (WIDTH,), "embeddings.patch_embedding.weight": (WIDTH, 3, 4, 4),
              "embeddings.position_embedding.weight": (5, WIDTH)}
    shapes.update({f"{layer}.self_attn.{name}_proj.weight": (WIDTH, WIDTH) for name in ("q", "k", "v", "out")})
    shapes.update({f"{layer}.self_attn.{name}_proj.bias": (WIDTH,) for name in ("q", "k", "v", "out")})
    shapes.update({f"{layer}.mlp.fc1.weight": (12, WIDTH), f"{layer}.mlp.fc1.bias": (12,), f"{layer}.mlp.fc2.weight": (WIDTH, 12),
                   f"{layer}.mlp.fc2.bias": (WIDTH,)})
    for norm in ("pre_layrnorm", "post_layernorm", f"{layer}.layer_norm1", f"{layer}.layer_norm2"):
        shapes.update({f"{norm}.weight": (WIDTH,), f"{norm}.bias": (WIDTH,)})
    write_safetensors(folder / "model.safetensors",
                      {f"vision_model.{name}": (0.3 * random.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()})
    (folder / "config.json").write_text(json.dumps({
        "model_type": "clip_vision_model", "hidden_size": WIDTH, "num_attention_heads": 2, "num_hidden_layers": 1,
        "intermediate_size": 12, "image_size": size, "patch_size": 4}))


def write_fast_weights(folder: pathlib.Path) -> None:
    """Writes a layer of torch's with causal linear attention."""
    random = np.random.default_rng(4)
    shapes = {"self_attn.in_proj_weight": (3 * WIDTH, WIDTH), "self_attn.out_proj.weight": (WIDTH, WIDTH),
              "linear1.weight": (12, WIDTH), "linear2.weight": (WIDTH, 12), "norm1.weight": (WIDTH,), "norm2.weight": (WIDTH,)}
    write_safetensors(folder / "w.safetensors",
                      {name: (0.3 * random.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()})
    (folder / "attendant.json").write_text(json.dumps({
        "module": "nn.TransformerEncoderLayer", "file": "w.safetensors", "num_heads": 2, "norm_first": True, "activation": "gelu",
        "layer_norm_eps": 1e-5, "attention": "causal_linear", "score_scale": 0.05}))
