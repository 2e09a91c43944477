"""Requests as Jina's API documents them, by Python's own HTTP client."""
import base64
import json
import urllib.error
import urllib.request

import common
import numpy as np


def poster(url):
    def post(path, **body):
        headers = {"content-type": "application/json", "authorization": "Bearer unused"}
        with urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode(), headers), timeout=60) as answer:
            return json.load(answer)
    return post


def check(checks, options, expected):
    post = poster(f"http://{options.http}")
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    answer = post("/v1/embeddings", model="minilm", task="retrieval.passage", normalized=True, embedding_type="float",
                  input=[{"text": text} for text in texts])
    checks.close("embeddings: float = native", [one["embedding"] for one in answer["data"]], whole, 1e-7)
    checks.that("usage", answer["usage"]["total_tokens"] == int(expected["mask"].sum()), answer["usage"])
    answer = post("/v1/embeddings", model="minilm", task="text-matching", embedding_type="base64", input=texts)
    checks.same("embeddings: base64 = native",
                np.array([np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in answer["data"]]), whole)

    documents, scores = texts[1:], expected["rank_scores"]
    order = np.argsort(-scores).tolist()
    results = post("/v1/rerank", model="reranker", query=texts[0], documents=documents, top_n=3, return_documents=True)["results"]
    checks.that("rerank: order = native", [one["index"] for one in results] == order, results)
    checks.that("rerank: documents", [one["document"]["text"] for one in results] == [documents[place] for place in order], results)
    checks.close("rerank: scores = native", [one["relevance_score"] for one in results], scores[order], 1e-6)
    checks.refuses("unknown model", lambda: post("/v1/rerank", model="nobody", query="a", documents=["b"]),
                   urllib.error.HTTPError, "404")


if __name__ == "__main__":
    common.run(lambda: "v1", check)
