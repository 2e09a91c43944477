"""LangChain's OpenAIEmbeddings. check_embedding_ctx_length=False is what it has for servers other than OpenAI's: with True it sends
ids of OpenAI's own tokenizer, which the server refuses. LiteLLM has the file of that tokenizer, which is downloaded otherwise."""
import asyncio
import importlib.util
import os
import pathlib

import common
import numpy as np
import openai
from langchain_openai import OpenAIEmbeddings

LITELLM = pathlib.Path(importlib.util.find_spec("litellm").origin).parent


def check(checks, options, expected):
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    settings = {"base_url": f"http://{options.http}/v1", "api_key": "unused", "check_embedding_ctx_length": False, "max_retries": 0}
    model = OpenAIEmbeddings(model="minilm", **settings)
    checks.same("embed_documents = native", np.array(model.embed_documents(texts)), whole)
    checks.same("embed_query = native", np.array([model.embed_query(text) for text in texts]), whole)
    checks.same("aembed_documents = native", np.array(asyncio.run(model.aembed_documents(texts))), whole)
    checks.same("chunk_size", np.array(model.embed_documents(texts * 3, chunk_size=5)), np.tile(whole, (3, 1)))
    short = whole[:, :128] / np.linalg.norm(whole[:, :128], axis=1, keepdims=True)
    made = OpenAIEmbeddings(model="text-embedding-3-small", dimensions=128, **settings)
    checks.close("dimensions, another name", np.array(made.embed_documents(texts)), short, 1e-6)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(LITELLM / "litellm_core_utils" / "tokenizers")
    ids = OpenAIEmbeddings(model="minilm", **{**settings, "check_embedding_ctx_length": True})
    checks.refuses("ids of OpenAI's tokenizer", lambda: ids.embed_documents(texts), openai.BadRequestError,
                   "check_embedding_ctx_length=False")


if __name__ == "__main__":
    common.run("langchain-openai", check)
