"""A random BERT: its folder, and what it computes, in float64 formulas."""
import dataclasses
import json
import math
import pathlib
import struct
from typing import Dict

import numpy as np


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int = 2
    width: int = 24
    heads: int = 3
    feed_forward: int = 40
    vocabulary: int = 60
    positions: int = 48
    classes: int = 3
    seed: int = 7
    has_decoder: bool = False  # a head that predicts masked words, with the table of words as its decoder


SMALL = Shape()
MASKED = Shape(classes=0, has_decoder=True)  # the same encoder
NORM_EPSILON = 1e-12


def make_weights(shape: Shape) -> Dict[str, np.ndarray]:
    random = np.random.default_rng(shape.seed)
    weights = {}

    def add(name, *dimensions, scale=0.2, offset=0.0):
        weights[name] = (offset + scale * random.standard_normal(dimensions)).astype(np.float32)

    def linear(name, inputs, outputs):
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs)

    def norm(name):
        add(f"{name}.weight", shape.width, offset=1.0)
        add(f"{name}.bias", shape.width)

    width = shape.width
    for table, rows in (("word", shape.vocabulary), ("position", shape.positions), ("token_type", 2)):
        add(f"bert.embeddings.{table}_embeddings.weight", rows, width, scale=0.5)
    norm("bert.embeddings.LayerNorm")
    for layer in range(shape.layers):
        prefix = f"bert.encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            linear(f"{prefix}.attention.self.{part}", width, width)
        linear(f"{prefix}.attention.output.dense", width, width)
        norm(f"{prefix}.attention.output.LayerNorm")
        linear(f"{prefix}.intermediate.dense", width, shape.feed_forward)
        linear(f"{prefix}.output.dense", shape.feed_forward, width)
        norm(f"{prefix}.output.LayerNorm")
    linear("bert.pooler.dense", width, width)
    if shape.classes:
        linear("classifier", width, shape.classes)
    if shape.has_decoder:
        linear("cls.predictions.transform.dense", width, width)
        norm("cls.predictions.transform.LayerNorm")
        add("cls.predictions.bias", shape.vocabulary)
    return weights


def write_safetensors(path: pathlib.Path, tensors: Dict[str, np.ndarray]) -> None:
    head, at = {}, 0
    for name, tensor in tensors.items():
        head[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensor.tobytes() for tensor in tensors.values()))


def write_checkpoint(folder: pathlib.Path, shape: Shape, pooling: str = "mean", classifies: str = "Sequence") -> None:
    """Writes the folder.

    pooling: "mean", which sentence-transformers' files say, or "" for a folder without these. classifies: what classes are of,
        "Sequence" or "Token".
    """
    architecture = f"BertFor{classifies}Classification" if shape.classes else "BertForMaskedLM" if shape.has_decoder else "BertModel"
    write_safetensors(folder / "model.safetensors", make_weights(shape))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "architectures": [architecture],
        "hidden_size": shape.width, "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
        "intermediate_size": shape.feed_forward, "vocab_size": shape.vocabulary, "type_vocab_size": 2,
        "max_position_embeddings": shape.positions, "hidden_act": "gelu", "layer_norm_eps": NORM_EPSILON,
        "id2label": {str(index): f"class {index}" for index in range(shape.classes)}}))
    if pooling:
        modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
        (folder / "modules.json").write_text(json.dumps(
            [{"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{name}"}
             for index, (name, path) in enumerate(modules)]))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(
            {"word_embedding_dimension": shape.width, "pooling_mode_mean_tokens": True}))


def layer_norm(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + NORM_EPSILON) * weight + bias


def gelu(rows: np.ndarray) -> np.ndarray:
    return rows * 0.5 * (1 + np.vectorize(math.erf)(rows / math.sqrt(2)))


class Reference:
    """The model of one sequence, [n, width], in float64."""

    def __init__(self, shape: Shape):
        self.shape = shape
        self.weights = {name: tensor.astype(np.float64) for name, tensor in make_weights(shape).items()}

    def _linear(self, name, rows):
        return rows @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, name, rows):
        return layer_norm(rows, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def embed(self, ids, types=None):
        tables = {name: self.weights[f"bert.embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")}
        types = np.zeros(len(ids), int) if types is None else types
        return self._norm("bert.embeddings.LayerNorm", tables["word"][ids] + tables["position"][:len(ids)] + tables["token_type"][types])

    def probabilities(self, layer, rows, bias=0.0):
        """Returns [heads, n, n]."""
        queries, keys = (self._heads(layer, part, rows) for part in ("query", "key"))
        scores = queries @ keys.transpose(0, 2, 1) / math.sqrt(queries.shape[-1]) + bias
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def _heads(self, layer, part, rows):
        made = self._linear(f"bert.encoder.layer.{layer}.attention.self.{part}", rows)
        return made.reshape(len(rows), self.shape.heads, -1).transpose(1, 0, 2)

    def context(self, layer, rows, bias=0.0, gates=None):
        gates = np.ones(self.shape.heads) if gates is None else np.asarray(gates)
        mixed = gates[:, None, None] * self.probabilities(layer, rows, bias) @ self._heads(layer, "value", rows)
        return mixed.transpose(1, 0, 2).reshape(len(rows), -1)

    def projected(self, layer, rows, **options):
        return self._linear(f"bert.encoder.layer.{layer}.attention.output.dense", self.context(layer, rows, **options))

    def block(self, layer, rows, **options):
        return self._norm(f"bert.encoder.layer.{layer}.attention.output.LayerNorm", self.projected(layer, rows, **options) + rows)

    def layer(self, layer, rows, **options):
        attended = self.block(layer, rows, **options)
        inner = self._linear(f"bert.encoder.layer.{layer}.intermediate.dense", attended)
        inner = gelu(inner)
        return self._norm(f"bert.encoder.layer.{layer}.output.LayerNorm",
                          self._linear(f"bert.encoder.layer.{layer}.output.dense", inner) + attended)

    def encode(self, rows, **options):
        for layer in range(self.shape.layers):
            rows = self.layer(layer, rows, **options)
        return rows

    def mean_vector(self, rows):
        mean = rows.mean(0)
        return mean / np.linalg.norm(mean)

    def token_scores(self, rows):
        return self._linear("classifier", rows)

    def scores(self, rows):
        return self._linear("classifier", np.tanh(self._linear("bert.pooler.dense", rows[0])))

    def sparse_vector(self, rows):
        """Returns SPLADE's vector over the vocabulary, with its zeros."""
        dense = gelu(self._linear("cls.predictions.transform.dense", rows))
        normed = self._norm("cls.predictions.transform.LayerNorm", dense)
        logits = normed @ self.weights["bert.embeddings.word_embeddings.weight"].T + self.weights["cls.predictions.bias"]
        return np.log1p(np.maximum(logits, 0)).max(0, initial=0)
