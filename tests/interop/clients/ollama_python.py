"""The package ollama."""
import asyncio

import common
import numpy as np
import ollama


async def at_once(url, texts):
    client = ollama.AsyncClient(host=url)
    answers = await asyncio.gather(*(client.embed(model="minilm", input=text) for text in texts * 8))
    return np.concatenate([answer.embeddings for answer in answers])


def check(checks, options, expected):
    url, texts, whole = f"http://{options.http}", expected["texts"].tolist(), expected["normalized"]
    client = ollama.Client(host=url)
    for name in ("minilm", "minilm:latest", "text-embedding-3-small"):
        answer = client.embed(model=name, input=texts, keep_alive="5m", options={"num_ctx": 2048})
        checks.close("embed = native", np.array(answer.embeddings), whole, 1e-7)
        checks.that("model, duration, count", answer.model == name and answer.total_duration > 0 and
                    answer.prompt_eval_count == int(expected["mask"].sum()), answer)
    checks.close("one text", np.array(client.embed(model="minilm", input=texts[0]).embeddings), whole[:1], 1e-7)
    short = whole[:, :128] / np.linalg.norm(whole[:, :128], axis=1, keepdims=True)
    checks.close("dimensions", np.array(client.embed(model="minilm", input=texts, dimensions=128).embeddings), short, 1e-6)
    old = np.array([client.embeddings(model="minilm", prompt=text).embedding for text in texts])
    checks.close("embeddings = native", old, expected["sentence_embedding"], 1e-6)
    checks.close("asyncio, 32 at once", asyncio.run(at_once(url, texts)), np.tile(whole, (8, 1)), 1e-7)
    checks.that("list", "minilm:latest" in {one.model for one in client.list().models})
    checks.refuses("unknown model", lambda: client.embed(model="no-such-model", input="a"), ollama.ResponseError,
                   "no-such-model", "404")
    checks.refuses("a long text", lambda: client.embed(model="minilm", input="a " * 600, truncate=False), ollama.ResponseError,
                   "at most 512 tokens")
    checks.refuses("chat", lambda: client.chat(model="minilm", messages=[]), ollama.ResponseError, "not found")


if __name__ == "__main__":
    common.run("ollama", check)
