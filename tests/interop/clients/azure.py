"""The package openai's AzureOpenAI, and LangChain's AzureOpenAIEmbeddings, which name the model in the path and send a key."""
import asyncio

import common
import numpy as np
import openai
from langchain_openai import AzureOpenAIEmbeddings

VERSION = "2024-10-21"


def vectors(answer):
    return np.array([one.embedding for one in answer.data])


def check(checks, options, expected):
    url, texts, whole = f"http://{options.http}", expected["texts"].tolist(), expected["normalized"]
    settings = {"azure_endpoint": url, "api_key": "unused", "api_version": VERSION, "max_retries": 0}
    client = openai.AzureOpenAI(**settings)
    answer = client.embeddings.create(model="minilm", input=texts)
    checks.same("base64 = native", vectors(answer), whole)
    checks.that("usage", answer.usage.total_tokens == int(expected["mask"].sum()), answer.usage)
    other = client.embeddings.create(model="text-embedding-3-small", input=texts)
    checks.that("another name (--alias)", other.model == "text-embedding-3-small", other.model)
    checks.that("models", "minilm" in {one.id for one in client.models.list()})
    of_deployment = openai.AzureOpenAI(azure_deployment="minilm", **settings)
    checks.same("azure_deployment", vectors(of_deployment.embeddings.create(model="any", input=texts)), whole)
    checks.refuses("unknown model", lambda: client.embeddings.create(model="no-such-model", input="a"),
                   openai.NotFoundError, "no-such-model")
    checks.refuses("unknown path", lambda: client.chat.completions.create(model="minilm", messages=[]), openai.NotFoundError,
                   "path: not found")
    made = AzureOpenAIEmbeddings(model="minilm", check_embedding_ctx_length=False, **settings)
    checks.same("LangChain embed_documents = native", np.array(made.embed_documents(texts)), whole)
    checks.same("LangChain aembed_query = native", np.array([asyncio.run(made.aembed_query(texts[0]))]), whole[:1])


if __name__ == "__main__":
    common.run("openai", check)
