#!/usr/bin/env python3
"""Builds small torch modules with random weights, and what torch computes with them.

    make_torch_modules.py DIR

writes, for each case, the folder DIR/<case> with
    attendant.json, module.safetensors   the model, as the server loads it
    input.npy                            hidden states, float32 [B, S, E]
    attention_mask.npy                   int64 [B, S], 1 keeps
    memory.npy, values.npy, memory_mask.npy   of "cross": [B, M, .] and [B, M]
    expected.npy                         float32 [B, S, E], rows that are masked out are zero
and DIR/cases.json, a list of {"name", "method"}: "attend" is the PROJECTED stage of layer 0,
"cross" the same with a memory, "encode" all layers. torch computes in float64. Needs Debian's python3-torch and python3-numpy.
"""

import inspect
import json
import pathlib
import struct
import sys

import numpy as np
import torch
from torch import nn

WIDTH, HEADS, FEED_FORWARD = 24, 4, 40
EPSILON = 1e-5
# Masks with padding after, before and between the kept tokens, and without any.
MASK = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 0, 1, 0, 1], [1, 1, 1, 1, 1, 1]])
MEMORY_MASK = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 1]])


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        values = tensor.detach().numpy().astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(values)],
        }
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def randomise(module):
    """Sets random values that are exact in float32, because torch's initial biases of 0 and norms of 1 would hide
    mistakes."""
    for name, parameter in module.named_parameters():
        is_norm_weight = parameter.dim() == 1 and name.endswith("weight")
        values = torch.randn(parameter.shape) * (0.1 if parameter.dim() == 1 else 0.2)
        parameter.data = (values + 1 if is_norm_weight else values).float().double()


def attention(bias):
    module = nn.MultiheadAttention(WIDTH, HEADS, bias=bias, batch_first=True)
    description = {"module": "nn.MultiheadAttention"}
    return module, description, lambda x, ignored: module(x, x, x, key_padding_mask=ignored)[0]


def cross_attention(key_width, value_width, bias=True):
    """Makes a module with keys and values of these widths; torch keeps one weight only if both are WIDTH."""
    module = nn.MultiheadAttention(WIDTH, HEADS, bias=bias, batch_first=True, kdim=key_width, vdim=value_width)
    return module, {"module": "nn.MultiheadAttention"}, (key_width, value_width)


def layer_arguments(norm_first, activation):
    return dict(
        d_model=WIDTH, nhead=HEADS, dim_feedforward=FEED_FORWARD, dropout=0.0, batch_first=True,
        norm_first=norm_first, activation=activation, layer_norm_eps=EPSILON)


def describe_layer(name, norm_first, activation):
    return {"module": name, "norm_first": norm_first, "activation": activation,
            "layer_norm_eps": EPSILON}


def layer(norm_first, activation, **more):
    module = nn.TransformerEncoderLayer(**layer_arguments(norm_first, activation), **more)
    description = describe_layer("nn.TransformerEncoderLayer", norm_first, activation)
    return module, description, lambda x, ignored: module(x, src_key_padding_mask=ignored)


def encoder(norm_first, activation, layers, exit_norm):
    one = nn.TransformerEncoderLayer(**layer_arguments(norm_first, activation))
    norm = nn.LayerNorm(WIDTH, eps=EPSILON) if exit_norm else None
    module = nn.TransformerEncoder(one, layers, norm, enable_nested_tensor=False)
    description = describe_layer("nn.TransformerEncoder", norm_first, activation)
    return module, description, lambda x, ignored: module(x, src_key_padding_mask=ignored)


def cases():
    yield "attention", "attend", attention(bias=True)
    yield "attention_without_bias", "attend", attention(bias=False)
    yield "cross_attention", "cross", cross_attention(WIDTH, WIDTH)
    yield "cross_attention_widths", "cross", cross_attention(10, 31)
    yield "cross_attention_widths_without_bias", "cross", cross_attention(WIDTH, 40, bias=False)
    for norm_first in (False, True):
        for activation in ("relu", "gelu"):
            name = f"layer_{'pre' if norm_first else 'post'}_{activation}"
            yield name, "encode", layer(norm_first, activation)
    if "bias" in inspect.signature(nn.TransformerEncoderLayer).parameters:  # since torch 2.1
        yield "layer_without_bias", "encode", layer(False, "relu", bias=False)
    yield "encoder_post", "encode", encoder(False, "relu", 2, exit_norm=False)
    yield "encoder_pre_norm", "encode", encoder(True, "gelu", 3, exit_norm=True)


def with_memory(folder, module, key_width, value_width):
    memory, values = (torch.randn(*MEMORY_MASK.shape, width) for width in (key_width, value_width))
    np.save(folder / "memory.npy", memory.numpy().astype("<f4"))
    np.save(folder / "values.npy", values.numpy().astype("<f4"))
    np.save(folder / "memory_mask.npy", MEMORY_MASK.astype("<i8"))
    ignored_rows = torch.from_numpy(MEMORY_MASK == 0)
    return lambda x, _: module(x, memory.double(), values.double(), key_padding_mask=ignored_rows)[0]


def write_case(folder, module, description, run):
    folder.mkdir(parents=True, exist_ok=True)
    module.double().eval()
    randomise(module)
    hidden_states = torch.randn(*MASK.shape, WIDTH)
    if isinstance(run, tuple):
        run = with_memory(folder, module, *run)
    # With gradients enabled, torch takes its plain path; the other one cuts padding off.
    expected = run(hidden_states.double(), torch.from_numpy(MASK == 0)).detach().numpy()
    expected = np.where(MASK[:, :, None] == 1, expected, 0.0)

    description.update(file="module.safetensors", num_heads=HEADS)
    (folder / "attendant.json").write_text(json.dumps(description, indent=2) + "\n")
    write_safetensors(folder / "module.safetensors", module.state_dict())
    np.save(folder / "input.npy", hidden_states.numpy().astype("<f4"))
    np.save(folder / "attention_mask.npy", MASK.astype("<i8"))
    np.save(folder / "expected.npy", expected.astype("<f4"))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    torch.manual_seed(20)
    written = []
    for name, method, (module, description, run) in cases():
        write_case(directory / name, module, description, run)
        written.append({"name": name, "method": method})
    (directory / "cases.json").write_text(json.dumps(written, indent=2) + "\n")
    print(f"{len(written)} cases of torch {torch.__version__} in {directory}")


if __name__ == "__main__":
    main()
