"""The package openai."""
import common
import numpy as np
import openai


def vectors(answer):
    return np.array([one.embedding for one in answer.data])


def check(checks, options, expected):
    client = openai.OpenAI(base_url=f"http://{options.http}/v1", api_key="unused", max_retries=0)
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    checks.that("models", "minilm" in {one.id for one in client.models.list()})
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
    checks.refuses("unknown model", lambda: client.embeddings.create(model="nobody", input="a"), openai.NotFoundError, "nobody")


if __name__ == "__main__":
    common.run("openai", check)
