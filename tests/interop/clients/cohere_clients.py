"""The package cohere: embed and rerank of both APIs."""
import base64

import cohere
import common
import numpy as np

BYTES = "<f4"


def check(checks, options, expected):
    url = f"http://{options.http}"
    client = cohere.ClientV2(api_key="unused", base_url=url)
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    made = client.embed(model="minilm", texts=texts, input_type="search_document", embedding_types=["float", "base64"])
    checks.close("embed: float = native", np.array(made.embeddings.float_), whole, 1e-7)
    checks.same("embed: base64 = native",
                np.array([np.frombuffer(base64.b64decode(one), BYTES) for one in made.embeddings.base64]), whole)
    checks.that("embed: usage", made.meta.billed_units.input_tokens == int(expected["mask"].sum()), made.meta)
    short = whole[:, :128] / np.linalg.norm(whole[:, :128], axis=1, keepdims=True)
    made = client.embed(model="minilm", texts=texts, input_type="search_query", output_dimension=128)
    checks.close("embed: output_dimension", np.array(made.embeddings.float_), short, 1e-6)

    inputs = [{"content": [{"type": "text", "text": text}]} for text in texts]
    made = client.embed(model="minilm", inputs=inputs, input_type="search_document", embedding_types=["float"])
    checks.close("embed: inputs", np.array(made.embeddings.float_), whole, 1e-7)
    bits = np.packbits(whole > 0, axis=1)
    made = client.embed(model="minilm", texts=texts, input_type="search_document", embedding_types=["binary", "ubinary"]).embeddings
    checks.same("embed: ubinary", np.array(made.ubinary), bits)
    checks.same("embed: binary", np.array(made.binary), bits.astype(np.int64) - 128)
    first = cohere.Client(api_key="unused", base_url=url)
    made = first.embed(model="minilm", texts=texts, input_type="search_document")
    checks.close("embed of the first API = native", np.array(made.embeddings), whole, 1e-7)
    made = first.embed(model="minilm", texts=texts, input_type="search_document", embedding_types=["float"])
    checks.close("embed of the first API, by type", np.array(made.embeddings.float_), whole, 1e-7)

    query, documents, scores = texts[0], texts[1:], expected["rank_scores"]
    order = np.argsort(-scores).tolist()
    ranked = client.rerank(model="reranker", query=query, documents=documents).results
    checks.that("rerank: order = native", [one.index for one in ranked] == order, ranked)
    checks.close("rerank: scores = native", [one.relevance_score for one in ranked], scores[order], 1e-6)
    older = first.rerank(model="reranker", query=query, documents=documents, top_n=2, return_documents=True).results
    checks.that("rerank of the first API", [one.document.text for one in older] == [documents[place] for place in order[:2]], older)
    for kind in (cohere.Client, cohere.ClientV2):
        of_openvino = kind(api_key="unused", base_url=f"{url}/v3").rerank(model="reranker", query=query, documents=documents).results
        checks.that("rerank at the base URL of OpenVINO Model Server", [one.index for one in of_openvino] == order, of_openvino)
    checks.refuses("unknown model", lambda: client.rerank(model="nobody", query=query, documents=documents),
                   cohere.NotFoundError, "nobody")


if __name__ == "__main__":
    common.run("cohere", check)
