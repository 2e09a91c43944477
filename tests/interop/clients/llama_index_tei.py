"""LlamaIndex's TextEmbeddingsInference, with the URL of a model, for it cannot name one. The slash at its end is doubled in requests."""
import asyncio

import common
import numpy as np
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference


def check(checks, options, expected):
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    model = TextEmbeddingsInference(model_name="minilm", base_url=f"http://{options.http}/models/minilm/", text_instruction="",
                                    query_instruction="", timeout=60, embed_batch_size=3)
    checks.close("texts = native", np.array(model.get_text_embedding_batch(texts)), whole, 1e-7)
    checks.close("a query = native", np.array([model.get_query_embedding(texts[0])]), whole[:1], 1e-7)
    checks.close("asyncio", np.array(asyncio.run(model.aget_text_embedding_batch(texts))), whole, 1e-7)
    made = np.array(model.get_text_embedding_batch([" ".join([texts[0]] * times) for times in (100, 200)]))
    checks.close("long texts are cut", made[0], made[1], 0)


if __name__ == "__main__":
    common.run("llama-index-embeddings-text-embeddings-inference", check)
