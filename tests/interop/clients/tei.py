"""Calls of text-embeddings-inference and of Hugging Face's Inference API: Hugging Face's client, and plain HTTP."""
import itertools
import json
import urllib.request

import common
import numpy as np
from huggingface_hub import InferenceClient


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.loads(answer.read() or "null")


def post(url, body):
    return get(urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"}))


def softmax(rows):
    powers = np.exp(rows - rows.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def check_vectors(checks, url, expected):
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    hub = InferenceClient(url)
    checks.close("feature_extraction = native", hub.feature_extraction(texts), whole, 1e-7)
    checks.close("one text", hub.feature_extraction(texts[0]), whole[:1], 1e-7)
    scores = hub.sentence_similarity(texts[0], texts[1:], model=f"{url}/similarity")
    checks.close("sentence_similarity", scores, whole[1:].astype(np.float64) @ whole[0], 1e-5)
    checks.close("/embed", post(f"{url}/embed", {"inputs": texts}), whole, 1e-7)
    checks.close("normalize: false", post(f"{url}/embed", {"inputs": texts, "normalize": False}), expected["sentence_embedding"], 1e-6)
    tokens = post(f"{url}/tokenize", {"inputs": texts})
    lengths = [len(row) for row in tokens]
    checks.that("/tokenize", lengths == expected["mask"].sum(axis=1).tolist() and
                [one["id"] for one in tokens[0]] == expected["ids"][0][:lengths[0]].tolist(), lengths)


def check_heads(checks, url, expected):
    texts = expected["texts"].tolist()
    names = [get(f"{url}/classes/info")["model_type"]["classifier"]["id2label"][str(index)] for index in range(3)]
    hub = InferenceClient(f"{url}/classes")
    for text, row in zip(texts, softmax(expected["class_scores"])):
        made = hub.text_classification(text)
        checks.that("text_classification: order", [one.label for one in made] == [names[place] for place in np.argsort(-row)], made)
        checks.close("text_classification = native", [one.score for one in made], np.sort(row)[::-1], 1e-6)
        made = hub.text_classification(text, function_to_apply="softmax", top_k=2)
        checks.close("function_to_apply: softmax", [one.score for one in made], np.sort(row)[:0:-1], 1e-6)
    made = hub.text_classification(texts[0], function_to_apply="sigmoid")
    checks.close("function_to_apply: sigmoid", [one.score for one in made],
                 np.sort(1 / (1 + np.exp(-expected["class_scores"][0].astype(np.float64))))[::-1], 1e-6)
    query, documents, scores = texts[0], texts[1:], expected["rank_scores"]
    made = post(f"{url}/reranker/rerank", {"query": query, "texts": documents})
    checks.that("/rerank", [one["index"] for one in made] == np.argsort(-scores).tolist(), made)
    checks.close("/rerank = native", [one["score"] for one in made], np.sort(scores)[::-1], 1e-6)


def check_tags(checks, url, expected):
    """Tokens with the same likeliest label that follow each other are one entity."""
    labels = get(f"{url}/tags/info")["model_type"]["token_classifier"]["id2label"]
    hub = InferenceClient(f"{url}/tags")
    for text, rows, mask in zip(expected["texts"].tolist(), softmax(expected["tag_scores"]), expected["mask"]):
        rows = rows[mask > 0][1:-1]  # without [CLS] and [SEP]
        places = [(one["start"], one["stop"]) for one in post(f"{url}/tags/tokenize", {"inputs": text})[0][1:-1]]
        found = []
        for place, group in itertools.groupby(range(len(rows)), lambda token: int(rows[token].argmax())):
            group = list(group)
            if labels[str(place)] != "O":
                found.append((labels[str(place)], places[group[0]][0], places[group[-1]][1], float(rows[group, place].mean())))
        made = hub.token_classification(text)
        checks.that("token_classification = native", [(one.entity_group, one.start, one.end) for one in made] ==
                    [one[:3] for one in found], made)
        checks.close("their scores", [one.score for one in made], np.array([one[3] for one in found]), 1e-6)
        checks.that("their words", all(one.word == text[one.start:one.end] for one in made), made)


def check(checks, options, expected):
    url = f"http://{options.http}"
    check_vectors(checks, f"{url}/models/minilm", expected)
    check_heads(checks, f"{url}/models", expected)
    check_tags(checks, f"{url}/models", expected)
    checks.that("/info", get(f"{url}/models/minilm/info")["model_id"] == "minilm")
    with urllib.request.urlopen(f"{url}/health", timeout=60) as answer:
        checks.that("/health", answer.status == 200)


if __name__ == "__main__":
    common.run("huggingface_hub", check)
