#!/usr/bin/env python3
"""Compares the server with transformers in float64: random models of every family, and all-MiniLM-L6-v2
in every compute type; before that, the rows of the table of tests/articles/README.md. See `run`."""
import argparse
import json
import pathlib
import platform
import subprocess
import sys

import numpy as np
import torch
import transformers

import adapters
import articles
import class_scores
import late_interaction
import m3_heads
import random_models
import rerankers
import sentence_models
import sparse_encoders
import static_models
import text_folders
import tokenizer_files
import towers
from attendant.v1 import encoder_service_pb2 as pb
from serving import encoder, serve, to_array, to_tensor

# The largest error of any element of a token's last hidden state.
LARGEST_F32_ERROR = 5e-5
# The lowest cosines of any token's last hidden state, and of any sentence's vector.
REQUIRED_COSINES = {"f32": (0.999999, 0.999999), "bf16x3": (0.999999, 0.999999), "bf16": (0.9997, 0.9999),
                    "int8": (0.99, 0.998)}
BATCH = 8
# What is wrong if a group of comparisons has failures.
PROBLEMS = {
    "families": "not every family agrees",
    "sparse_encoders": "not every SPLADE model agrees with sentence-transformers",
    "sentence_models": "not every folder of sentence-transformers agrees with it",
    "late_interaction": "not every model of late interaction scores as sentence-transformers does",
    "rerankers": "not every reranker by two logits agrees with transformers",
    "m3_heads": "not every head of bge-m3 agrees with FlagEmbedding's formulas",
    "static_models": "not every static embedding agrees with its library",
    "towers": "not every tower gives the vectors of transformers",
    "adapters": "not every model with an adapter agrees with PEFT",
    "tokenizer_files": "not every tokenizer gives the ids of transformers",
    "text_folders": "not every folder gives the vectors or scores of sentence-transformers",
    "class_scores": "not every head's scores are those of the library",
}


def padded_request(model: str, sentences: list) -> pb.EncodeRequest:
    """Returns token_ids [B, S], padded with zeros, and the mask of the kept ones."""
    ids = np.zeros((len(sentences), max(map(len, sentences))), dtype=np.int64)
    for row, sentence in zip(ids, sentences):
        row[: len(sentence)] = sentence
    mask = (np.arange(ids.shape[1]) < np.array([[len(s)] for s in sentences])).astype(np.uint8)
    return pb.EncodeRequest(
        model=model,
        token_ids=to_tensor(ids),
        attention_mask=to_tensor(mask),
        return_pooled=True)


def serve_sentences(port: int, model: str, sentences: list) -> tuple:
    """Returns the hidden states [length, E] of each sentence's tokens, and the sentences' vectors."""
    encode = encoder(port)
    batches = [sentences[i:i + BATCH] for i in range(0, len(sentences), BATCH)]
    calls = [encode.future(padded_request(model, batch)) for batch in batches]
    tokens, vectors = [], []
    for batch, call in zip(batches, calls):
        answer = call.result()
        tokens += [rows[:len(ids)] for ids, rows in zip(batch, to_array(answer.hidden_states))]
        vectors.append(to_array(answer.pooled))
    return tokens, np.concatenate(vectors)


def compute_sentences(folder: pathlib.Path, sentences: list) -> tuple:
    """Returns these from transformers in float64, one sentence at a time, with mean pooling and scaling to length 1,
    which the checkpoint's modules ask for."""
    torch.set_num_threads(1)  # sentences are too short to share
    model = transformers.AutoModel.from_pretrained(folder).double().eval()
    tokens = []
    with torch.no_grad():
        for sentence in sentences:
            tokens.append(model(input_ids=torch.tensor([sentence])).last_hidden_state[0].numpy())
    means = np.stack([rows.mean(axis=0) for rows in tokens])
    return tokens, means / np.linalg.norm(means, axis=1, keepdims=True)


def lowest_cosine(a: np.ndarray, b: np.ndarray) -> float:
    """The lowest cosine of any pair of rows."""
    return float(((a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).min())


def takes(program: str, source: str) -> bool:
    """Whether this machine's CPU can compute in this type."""
    return subprocess.run([program, "--describe", source], stdout=subprocess.DEVNULL, check=False).returncode == 0


def prefix_of(dtype: str) -> str:
    return "families.minilm-l6." + ("" if dtype == "f32" else dtype + ".")


def compare_minilm(program: str, folder: pathlib.Path) -> dict:
    with open(pathlib.Path(__file__).parent / "sentences.jsonl", encoding="utf-8") as file:
        sentences = [json.loads(line)["ids"] for line in file]
    # Cuts to the checkpoint's own limit and keeps [SEP].
    sentences = [ids if len(ids) <= 256 else ids[:255] + ids[-1:] for ids in sentences]
    sources = {dtype: f"{folder},dtype={dtype}" for dtype in REQUIRED_COSINES}
    emulated = [dtype for dtype, source in sources.items() if not takes(program, source)]
    for dtype in emulated:
        sources[dtype] += ",emulate=true"
    with serve(program, sources) as port:
        served = {dtype: serve_sentences(port, dtype, sentences) for dtype in sources}
    tokens, vectors = compute_sentences(folder, sentences)
    figures = {"families.minilm-l6.sentences": len(sentences)}
    for dtype, (own_tokens, own_vectors) in served.items():
        prefix = prefix_of(dtype)
        own_rows, rows = np.concatenate(own_tokens), np.concatenate(tokens)
        figures[prefix + "emulated"] = int(dtype in emulated)
        figures[prefix + "lowest_token_cosine"] = lowest_cosine(own_rows, rows)
        figures[prefix + "token_max_abs_error"] = float(np.abs(own_rows - rows).max())
        figures[prefix + "lowest_cosine"] = lowest_cosine(own_vectors, vectors)
        figures[prefix + "max_abs_error"] = float(np.abs(own_vectors - vectors).max())
    return figures


def failures_of(figures: dict) -> list:
    failures = [problem for group, problem in PROBLEMS.items() if figures.get(f"{group}.failed")]
    if figures.get("articles.rows_missing"):
        failures.append("not every row of the articles has its tests")
    if figures.get("articles.rows_passed") == 0:
        failures.append("tests/articles/README.md has no row of an article")
    for dtype, required in REQUIRED_COSINES.items():
        for name, least in zip(("lowest_token_cosine", "lowest_cosine"), required):
            if not figures[prefix_of(dtype) + name] >= least:
                failures.append(f"{prefix_of(dtype) + name} is below {least}")
    if not figures[prefix_of("f32") + "token_max_abs_error"] <= LARGEST_F32_ERROR:
        failures.append(f"{prefix_of('f32')}token_max_abs_error is above {LARGEST_F32_ERROR}")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--minilm", type=pathlib.Path, required=True, help="the folder of the real one")
    parser.add_argument("--articles", help="the program of tests/articles; without it they are left out")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    figures = {}
    if options.articles:
        figures.update(articles.compare(options.articles, pathlib.Path(__file__).parents[2]))
    figures.update(random_models.compare(options.server))
    figures.update(sparse_encoders.compare(options.server))
    figures.update(sentence_models.compare(options.server))
    figures.update(late_interaction.compare(options.server))
    figures.update(m3_heads.compare(options.server))
    figures.update(rerankers.compare(options.server))
    figures.update(static_models.compare(options.server))
    figures.update(towers.compare(options.server))
    figures.update(adapters.compare(options.server))
    figures.update(tokenizer_files.compare(options.server))
    figures.update(text_folders.compare(options.server))
    figures.update(class_scores.compare(options.server))
    figures.update(compare_minilm(options.server, options.minilm))
    for name, value in figures.items():
        print(f"{name:50} {value:.10g}")
    if options.json:
        options.json.write_text(json.dumps({"machine": {"isa": platform.processor() or platform.machine()},
                                            "figures": figures}, indent=2) + "\n")
    if failures := failures_of(figures):
        sys.exit("\n".join(failures))


main()
