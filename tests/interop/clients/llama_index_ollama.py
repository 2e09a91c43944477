"""LlamaIndex's OllamaEmbedding."""
import asyncio

import common
import numpy as np
from llama_index.embeddings.ollama import OllamaEmbedding


def check(checks, options, expected):
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    model = OllamaEmbedding(model_name="minilm", base_url=f"http://{options.http}", embed_batch_size=3)
    checks.close("texts = native", np.array(model.get_text_embedding_batch(texts)), whole, 1e-7)
    checks.close("a query = native", np.array([model.get_query_embedding(texts[0])]), whole[:1], 1e-7)
    checks.close("asyncio", np.array(asyncio.run(model.aget_text_embedding_batch(texts))), whole, 1e-7)


if __name__ == "__main__":
    common.run("llama-index-embeddings-ollama", check)
