"""The Python client's texts against sentence-transformers, on the real all-MiniLM-L6-v2: the same vectors, and how quickly.

Runs where both are installed. Prints one JSON document with figures. The variable INTEROP has "grpc", the server's address;
"checkpoint", the folder of the model; "threads", the CPUs of the server and of torch alike; and "rounds".
"""
import importlib.metadata
import json
import os
import pathlib
import statistics
import time

import numpy as np
import torch
from attendant_client.text import TextModel
from sentence_transformers import SentenceTransformer

OPTIONS = json.loads(os.environ["INTEROP"])
SENTENCES = pathlib.Path(__file__).parents[1] / "families" / "sentences.jsonl"
PROMPT = "query: "


def sayings() -> list:
    with open(SENTENCES, encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def ragged(texts: list) -> list:
    """Short ones, and some of several paragraphs."""
    return texts[:200] + [" ".join(texts[i:i + 2 + i % 4]) for i in range(200, 300, 5)]


def lowest_cosine(made: np.ndarray, known: np.ndarray) -> float:
    made, known = made.astype(np.float64), known.astype(np.float64)
    cosines = (made * known).sum(axis=1) / np.linalg.norm(made, axis=1) / np.linalg.norm(known, axis=1)
    return float(cosines.min())


def compare(model: TextModel, peer: SentenceTransformer, texts: list) -> dict:
    """The lowest cosine of each kind of texts."""
    kinds = {
        "plain": (texts[:300], {}),
        "truncated": ([" ".join(texts[i:i + 25]) for i in range(0, 200, 25)], {}),
        "prompts": (texts[300:400], {"prompt": PROMPT}),
        "truncated prompts": ([" ".join(texts[i:i + 25]) for i in range(200, 300, 25)], {"prompt": PROMPT}),
        "spaces": ([f"  \n {text}\t  " for text in texts[400:450]], {}),
        "spaces and prompts": ([f"  {text}  " for text in texts[400:450]], {"prompt": PROMPT}),
        "odd": (["", " ", "a", "naïve café — ½", "日本語のテキスト", "🙂🙂", "x" * 3000, "[CLS] [SEP] [MASK]", "A\0B", "don't"], {}),
    }
    return {kind: lowest_cosine(model.embed(given, **options), peer.encode(given, **options))
            for kind, (given, options) in kinds.items()}


def seconds(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def race(model: TextModel, peer: SentenceTransformer, texts: list) -> list:
    """The peer's time over the client's, of each round; they take turns. The peer's is the better one of those with one thread
    and with one for each CPU: its threads wait for each other, which costs much where something else runs."""
    def own() -> float:
        return seconds(lambda: model.embed(texts, progress=False))

    def others() -> float:
        taken = []
        for threads in {1, OPTIONS["threads"]}:
            torch.set_num_threads(threads)
            taken.append(seconds(lambda: peer.encode(texts, show_progress_bar=False)))
        return min(taken)

    rounds = []
    for i in range(OPTIONS["rounds"] + 1):
        if i % 2 == 0:
            mine, other = own(), others()
        else:
            other, mine = others(), own()
        rounds.append(other / mine)
    return rounds[1:]  # after one to warm up


def main() -> None:
    peer = SentenceTransformer(OPTIONS["checkpoint"], device="cpu")
    model = TextModel(OPTIONS["grpc"], "minilm")
    texts = sayings()
    cosines = compare(model, peer, texts)
    rounds = race(model, peer, ragged(texts))
    print(json.dumps({
        "version": importlib.metadata.version("sentence-transformers"), "torch": torch.__version__, "cosines": cosines,
        "text.cosine": min(cosines.values()), "python.text_over_sentence_transformers": statistics.median(rounds),
        "spread": [min(rounds), max(rounds)]}))


if __name__ == "__main__":
    main()
