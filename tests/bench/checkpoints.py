"""Checkpoints that the engine and every peer can load: real shapes, seeded weights, in Hugging Face's format."""
import json
import pathlib
import shutil

import numpy as np

from cases import Model
from checkpoint_kinds import KINDS, Kind

_ELEMENTS = 1 << 22  # made at a time, because tables take most of a gigabyte


def _config(model: Model) -> dict:
    return {"model_type": model.kind, "torch_dtype": "float32", **KINDS[model.kind].config(model)}


def _write_values(kind: Kind, name: str, elements: int, generator, file) -> None:
    mean = np.float32(kind.norm_weight if kind.has_norm(name) else 0)
    for begin in range(0, elements, _ELEMENTS):
        values = generator.standard_normal(min(_ELEMENTS, elements - begin), dtype=np.float32)
        values *= np.float32(0.02)
        values += mean
        file.write(values.tobytes())


def write(model: Model, folder: pathlib.Path) -> pathlib.Path:
    """Writes the checkpoint unless it exists. One of another shape goes, with what peers have converted it to."""
    weights, config, kind = folder / "model.safetensors", folder / "config.json", KINDS[model.kind]
    wanted = json.dumps(_config(model), indent=2)
    if weights.exists() and config.read_text(encoding="utf-8") == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config.write_text(wanted, encoding="utf-8")
    kind.write_tokenizer(folder)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in kind.tensors(model):
        end = at + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    generator = np.random.default_rng(1)
    unfinished = weights.with_suffix(".part")
    with open(unfinished, "wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for name, shape in kind.tensors(model):
            _write_values(kind, name, int(np.prod(shape)), generator, file)
    unfinished.rename(weights)
    return folder
