"""Texts that the server tokenizes, over HTTP and gRPC, against sentence-transformers on the real all-MiniLM-L6-v2: the same vectors,
the same numbers of tokens, and how quickly. Heads of heads.py against its CrossEncoder and transformers' pipelines.

Runs where all are installed. Prints one JSON document with figures. The variable INTEROP has "grpc" and "http", the server's
addresses; "models", the folders of what it serves by name; "threads", the CPUs of the server and of torch alike; and "rounds".
"""
import base64
import http.client
import importlib.metadata
import json
import os
import statistics
import time
import types

import numpy as np
import torch
import transformers
from attendant_client.text import TextModel
from sentence_transformers import CrossEncoder, SentenceTransformer

import text_kinds

OPTIONS = types.SimpleNamespace(**json.loads(os.environ["INTEROP"]))
BOUND = 1e-5  # of scores and probabilities


class Http:
    """One connection to the server, or another one where sentence-transformers took so long that it may have ended."""

    def __init__(self):
        self._connection = http.client.HTTPConnection(OPTIONS.http, timeout=120)
        self._used = time.monotonic()

    def post(self, path: str, body: dict):
        if time.monotonic() - self._used > 30:
            self._connection.close()
        self._used = time.monotonic()
        self._connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise ValueError(f"{path}: {answer.status}: {text[:300]}")
        return json.loads(text)

    def embed(self, texts, prompt: bool = False, left: bool = False) -> tuple:
        """The vectors, and the number of all tokens."""
        body = {"model": "minilm", "input": texts, "encoding_format": "base64", "truncation_direction": "left" if left else "right"}
        answer = self.post("/v1/embeddings", {**body, "input_type": "query"} if prompt else body)
        return np.array([np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in answer["data"]]), answer["usage"]["total_tokens"]


class Comparison:
    """What is found: the lowest cosine of each kind, and texts whose numbers of tokens differ."""

    def __init__(self):
        self.cosines, self.differing, self.scores = {}, [], {}

    def vectors(self, kind: str, made: np.ndarray, known: np.ndarray) -> None:
        made, known = made.astype(np.float64), known.astype(np.float64)
        cosines = (made * known).sum(axis=1) / np.linalg.norm(made, axis=1) / np.linalg.norm(known, axis=1)
        self.cosines[kind] = min(self.cosines.get(kind, 1.0), float(cosines.min()))

    def counts(self, where: str, texts: list, made: list, known: list) -> None:
        self.differing += [f"{where}: {one!a:.80}: {own} for {others} tokens" for one, own, others in zip(texts, made, known)
                           if own != others]

    def close(self, what: str, made, known) -> None:
        made, known = np.asarray(made, np.float64), np.asarray(known, np.float64)
        if made.shape != known.shape or np.abs(made - known).max(initial=0) > BOUND:
            raise ValueError(f"{what}: shapes {made.shape} and {known.shape}, or off by more than {BOUND}")
        self.scores[what] = max(self.scores.get(what, 0.0), float(np.abs(made - known).max(initial=0)))


def compare_vectors(found: Comparison, model: TextModel, server: Http, peer: SentenceTransformer) -> None:
    for kind, (texts, ways) in text_kinds.kinds().items():
        prompt, side = text_kinds.PROMPT if ways.get("prompt") else "", "left" if ways.get("left") else "right"
        peer.tokenizer.truncation_side = side
        known = peer.encode(texts, prompt=prompt or None, show_progress_bar=False)
        counts = [peer.preprocess([prompt + text])["input_ids"].shape[1] for text in texts]
        alone = [server.embed([text], **ways) for text in texts]
        together, total = server.embed(texts, **ways)
        if not np.array_equal(together, np.concatenate([vectors for vectors, _ in alone])) or total != sum(count for _, count in alone):
            raise ValueError(f"{kind}: the same texts in one request and in many get other vectors")
        found.vectors(kind, together, known)
        found.counts(f"HTTP, {kind}", texts, [count for _, count in alone], counts)
        found.vectors(kind, model.embed(texts, prompt=prompt or None, truncation=side, progress=False), known)
        found.counts(f"gRPC, {kind}", texts, [len(model.tokens(prompt + text, truncation=side).ids) for text in texts], counts)
    peer.tokenizer.truncation_side = "right"


def compare_pairs(found: Comparison, server: Http) -> None:
    """A cross-encoder; long pairs are cut, the longer text first."""
    encoder = CrossEncoder(OPTIONS.models["reranker"], device="cpu")
    sentences = text_kinds.sayings()
    documents = [*sentences[1:60], *text_kinds.SCRIPTS, *text_kinds.BLANK, *text_kinds.long(sentences[:300], 50)]
    for query in (sentences[0], text_kinds.SCRIPTS[3], " ".join(sentences[600:640])):
        pairs = [(query, document) for document in documents]
        known = encoder.predict(pairs, show_progress_bar=False)
        counts = [len(encoder.tokenizer(*pair, truncation="longest_first", max_length=512)["input_ids"]) for pair in pairs]
        made = server.post("/models/reranker/rerank", {"query": query, "texts": documents})
        found.close("pairs over HTTP", [one["score"] for one in sorted(made, key=lambda one: one["index"])], known)
        ranked = TextModel(OPTIONS.grpc, "reranker").rerank(query, documents)
        found.close("pairs over gRPC", [one.score for one in sorted(ranked, key=lambda one: one.index)], known)
        alone = [server.post("/v1/rerank", {"model": "reranker", "query": query, "documents": [one]}) for one in documents]
        found.counts("pairs", documents, [one["usage"]["total_tokens"] for one in alone], counts)


def compare_classes(found: Comparison, server: Http) -> None:
    """Classes of texts, and of tokens, beside the library's pipelines."""
    texts = [*text_kinds.sayings()[:60], *text_kinds.SCRIPTS]
    pipeline = transformers.pipeline("text-classification", OPTIONS.models["classes"], device="cpu", top_k=None)
    for made, known in zip(server.post("/models/classes/predict", {"inputs": [[text] for text in texts]}), pipeline(texts)):
        known = {one["label"]: one["score"] for one in known}
        found.close("classes", [one["score"] for one in made], [known[one["label"]] for one in made])
    tagger = transformers.pipeline("token-classification", OPTIONS.models["tags"], device="cpu", aggregation_strategy="simple")
    for text, made in zip(texts, server.post("/models/tags/entities", {"inputs": texts})):
        known = tagger(text)
        places = [[(one["entity_group"], one["start"], one["end"]) for one in side] for side in (made, known)]
        if places[0] != places[1]:
            raise ValueError(f"entities of {text!a}: {places[0]} for {places[1]}")
        found.close("entities", [one["score"] for one in made], [one["score"] for one in known])


def seconds(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def ragged(texts: list) -> list:
    """Short ones, and some of several paragraphs."""
    return texts[:200] + [" ".join(texts[i:i + 2 + i % 4]) for i in range(200, 300, 5)]


def race(model: TextModel, peer: SentenceTransformer, texts: list) -> list:
    """The peer's time over the client's, of each round; they take turns. The peer's is the better one of those with one thread
    and with one for each CPU: its threads wait for each other, which costs much where something else runs."""
    def own() -> float:
        return seconds(lambda: model.embed(texts, progress=False))

    def others() -> float:
        taken = []
        for threads in {1, OPTIONS.threads}:
            torch.set_num_threads(threads)
            taken.append(seconds(lambda: peer.encode(texts, show_progress_bar=False)))
        return min(taken)

    rounds = []
    for i in range(OPTIONS.rounds + 1):
        if i % 2 == 0:
            mine, other = own(), others()
        else:
            other, mine = others(), own()
        rounds.append(other / mine)
    return rounds[1:]  # after one to warm up


def main() -> None:
    peer = SentenceTransformer(OPTIONS.models["minilm"], device="cpu")
    model, server, found = TextModel(OPTIONS.grpc, "minilm"), Http(), Comparison()
    compare_vectors(found, model, server, peer)
    compare_pairs(found, server)
    compare_classes(found, server)
    rounds = race(model, peer, ragged(text_kinds.sayings()))
    print(json.dumps({
        "version": importlib.metadata.version("sentence-transformers"), "cosines": found.cosines, "scores": found.scores,
        "differing": found.differing[:5], "spread": [min(rounds), max(rounds)], "figures": {
            "text.cosine": min(found.cosines.values()), "text.differing_token_counts": len(found.differing),
            "python.text_over_sentence_transformers": statistics.median(rounds)}}))


if __name__ == "__main__":
    main()
