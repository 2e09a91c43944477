"""Calls of text-embeddings-inference: Hugging Face's client, and plain HTTP."""
import json
import urllib.request

import common
import numpy as np
from huggingface_hub import InferenceClient


def post(url, path, body):
    sent = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(sent, timeout=60) as answer:
        return json.load(answer)


def check(checks, options, expected):
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    url = f"http://{options.http}"
    hub = InferenceClient(url)
    checks.close("feature_extraction = native", hub.feature_extraction(texts), whole, 1e-7)
    checks.close("one text", hub.feature_extraction(texts[0]), whole[:1], 1e-7)
    scores = hub.sentence_similarity(texts[0], texts[1:], model=f"{url}/similarity")
    checks.close("sentence_similarity", scores, whole[1:].astype(np.float64) @ whole[0], 1e-5)
    checks.close("/embed", post(url, "/embed", {"inputs": texts}), whole, 1e-7)
    checks.close("normalize: false", post(url, "/embed", {"inputs": texts, "normalize": False}),
                 expected["sentence_embedding"], 1e-6)
    tokens = post(url, "/tokenize", {"inputs": texts})
    lengths = [len(row) for row in tokens]
    checks.that("/tokenize", lengths == expected["mask"].sum(axis=1).tolist() and
                [one["id"] for one in tokens[0]] == expected["ids"][0][:lengths[0]].tolist(), lengths)
    with urllib.request.urlopen(url + "/info", timeout=60) as answer:
        checks.that("/info", json.load(answer)["model_id"] == "minilm")
    with urllib.request.urlopen(url + "/health", timeout=60) as answer:
        checks.that("/health", answer.status == 200)


if __name__ == "__main__":
    common.run("huggingface_hub", check)
