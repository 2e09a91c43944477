"""Checkpoints that the engine and every peer can load: real shapes, seeded weights, in Hugging Face's format."""
import json
import pathlib
import shutil

import numpy as np

from cases import CLS, SEP, Model

VOCABULARY, POSITIONS, TOKEN_TYPES = 30522, 2048, 2  # more positions than BERT has, for the longest case


def _tensors(model: Model):
    """The name and the shape of each tensor."""
    e, f = model.hidden_size, model.feed_forward_width
    embeddings = "embeddings."
    yield embeddings + "word_embeddings.weight", (VOCABULARY, e)
    yield embeddings + "position_embeddings.weight", (POSITIONS, e)
    yield embeddings + "token_type_embeddings.weight", (TOKEN_TYPES, e)
    yield from _pair(embeddings + "LayerNorm", (e,))
    for i in range(model.layers):
        layer = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            yield from _pair(f"{layer}attention.self.{part}", (e, e))
        yield from _pair(layer + "attention.output.dense", (e, e))
        yield from _pair(layer + "attention.output.LayerNorm", (e,))
        yield from _pair(layer + "intermediate.dense", (f, e))
        yield from _pair(layer + "output.dense", (e, f))
        yield from _pair(layer + "output.LayerNorm", (e,))
    yield from _pair("pooler.dense", (e, e))


def _pair(name: str, shape: tuple):
    yield name + ".weight", shape
    yield name + ".bias", shape[:1]


def _values(name: str, shape: tuple, generator) -> np.ndarray:
    values = generator.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
    return values + 1 if name.endswith("LayerNorm.weight") else values


def _config(model: Model) -> dict:
    return {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": model.hidden_size,
            "num_hidden_layers": model.layers, "num_attention_heads": model.heads,
            "intermediate_size": model.feed_forward_width, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
            "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, "type_vocab_size": TOKEN_TYPES,
            "position_embedding_type": "absolute", "pad_token_id": 0, "torch_dtype": "float32"}


def _vocabulary() -> str:
    """Writes a tokenizer, because some converters insist on one; nothing is ever tokenized here."""
    words = [f"word{i}" for i in range(VOCABULARY)]
    for index, word in {0: "[PAD]", 100: "[UNK]", CLS: "[CLS]", SEP: "[SEP]", 103: "[MASK]"}.items():
        words[index] = word
    return "\n".join(words) + "\n"


def write(model: Model, folder: pathlib.Path) -> pathlib.Path:
    """Writes the checkpoint unless it exists. One of another shape goes, with what peers have converted it to."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    wanted = json.dumps(_config(model), indent=2)
    if weights.exists() and config.read_text(encoding="utf-8") == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config.write_text(wanted, encoding="utf-8")
    (folder / "vocab.txt").write_text(_vocabulary(), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}), encoding="utf-8")
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in _tensors(model):
        end = at + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    generator = np.random.default_rng(1)
    unfinished = weights.with_suffix(".part")
    with open(unfinished, "wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for name, shape in _tensors(model):
            file.write(_values(name, shape, generator).tobytes())
    unfinished.rename(weights)
    return folder
