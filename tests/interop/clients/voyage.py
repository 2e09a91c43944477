"""The package voyageai."""
import common
import numpy as np
import voyageai


def check(checks, options, expected):
    client = voyageai.Client(api_key="unused", base_url=f"http://{options.http}/v1", max_retries=0)
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    made = client.embed(texts, model="minilm", input_type="document")
    checks.close("embed = native", np.array(made.embeddings), whole, 1e-7)
    checks.that("usage", made.total_tokens == int(expected["mask"].sum()), made.total_tokens)
    short = whole[:, :128] / np.linalg.norm(whole[:, :128], axis=1, keepdims=True)
    checks.close("output_dimension", np.array(client.embed(texts, model="minilm", output_dimension=128).embeddings), short, 1e-6)
    bits = np.packbits(whole > 0, axis=1)
    for dtype, known in (("ubinary", bits), ("binary", (bits.astype(np.int64) - 128))):
        checks.same(f"output_dtype {dtype}", np.array(client.embed(texts, model="minilm", output_dtype=dtype).embeddings), known)
    documents, scores = texts[1:], expected["rank_scores"]
    order = np.argsort(-scores).tolist()
    ranked = client.rerank(texts[0], documents, model="reranker", top_k=2)
    checks.that("rerank: order = native", [one.index for one in ranked.results] == order[:2], ranked.results)
    checks.close("rerank: scores = native", [one.relevance_score for one in ranked.results], scores[order[:2]], 1e-6)
    checks.refuses("unknown type", lambda: client.embed(texts, model="minilm", output_dtype="int8"),
                   voyageai.error.VoyageError, "output_dtype")


if __name__ == "__main__":
    common.run("voyageai", check)
