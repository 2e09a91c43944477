"""LangChain's OllamaEmbeddings, which may look for its model in Ollama's list first."""
import asyncio

import common
import numpy as np
from langchain_ollama import OllamaEmbeddings


def check(checks, options, expected):
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    for name in ("minilm", "minilm:latest"):
        model = OllamaEmbeddings(model=name, base_url=f"http://{options.http}", validate_model_on_init=True, num_ctx=256)
        checks.close("embed_documents = native", np.array(model.embed_documents(texts)), whole, 1e-7)
        checks.close("embed_query = native", np.array([model.embed_query(text) for text in texts]), whole, 1e-7)
        checks.close("aembed_documents = native", np.array(asyncio.run(model.aembed_documents(texts))), whole, 1e-7)
    checks.refuses("unknown model", lambda: OllamaEmbeddings(model="no-such-model", base_url=f"http://{options.http}",
                                                             validate_model_on_init=True), ValueError, "minilm:latest")


if __name__ == "__main__":
    common.run("langchain-ollama", check)
