"""The package openai."""
import asyncio

import common
import numpy as np
import openai


def vectors(answer):
    return np.array([one.embedding for one in answer.data])


async def beside_one_another(url, texts):
    async with openai.AsyncOpenAI(base_url=url, api_key="unused", max_retries=0) as client:
        answers = await asyncio.gather(*(client.embeddings.create(model="minilm", input=text) for text in texts * 8))
    return np.concatenate([vectors(answer) for answer in answers])


def check(checks, options, expected):
    url = f"http://{options.http}/v1"
    client = openai.OpenAI(base_url=url, api_key="unused", max_retries=0)
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    checks.that("models", "minilm" in {one.id for one in client.models.list()} and client.models.retrieve("minilm").id == "minilm")
    answer = client.embeddings.create(model="minilm", input=texts)
    checks.same("base64 = native", vectors(answer), whole)
    checks.that("usage", answer.usage.total_tokens == int(expected["mask"].sum()), answer.usage)
    checks.close("floats = native", vectors(client.embeddings.create(model="minilm", input=texts, encoding_format="float")),
                 whole, 1e-7)
    kept = expected["mask"] > 0
    ids = [row[mask].tolist() for row, mask in zip(expected["ids"], kept)]
    checks.same("token ids = native", vectors(client.embeddings.create(model="minilm", input=ids)), whole)
    short = whole[:, :128] / np.linalg.norm(whole[:, :128], axis=1, keepdims=True)
    checks.close("dimensions", vectors(client.embeddings.create(model="minilm", input=texts, dimensions=128)), short, 1e-6)
    other = client.embeddings.create(model="text-embedding-3-small", input=texts)
    checks.same("another name (--alias)", vectors(other), whole)
    checks.that("another name (--alias)", other.model == "text-embedding-3-small", other.model)
    checks.same("asyncio, 32 at once", asyncio.run(beside_one_another(url, texts)), np.tile(whole, (8, 1)))
    with openai.OpenAI(base_url=f"http://{options.http}/v3", api_key="unused", max_retries=0) as of_openvino:
        checks.same("the base URL of OpenVINO Model Server", vectors(of_openvino.embeddings.create(model="minilm", input=texts)), whole)
        checks.that("its models", of_openvino.models.retrieve("minilm").id == "minilm")
    checks.refuses("unknown model", lambda: client.embeddings.create(model="nobody", input="a"), openai.NotFoundError, "nobody")
    checks.refuses("no text", lambda: client.embeddings.create(model="minilm", input=[]), openai.BadRequestError, "empty list")


if __name__ == "__main__":
    common.run("openai", check)
