"""OpenAI's API, called by its own package."""
import asyncio
import base64

import numpy as np
import openai
import pytest
from text_models import ids_of

TEXTS = ["a cat sat", "the dog", "c", "is this one as long as the others are, or not?"]


@pytest.fixture(scope="module")
def caller(front):
    return openai.OpenAI(base_url=f"{front.url}/v1", api_key="unused", max_retries=0)


@pytest.fixture(scope="module")
def expected(client):
    """The vectors of TEXTS by the native API."""
    return client.encode("embedder", input_ids=[ids_of(text) for text in TEXTS], pooling="model", normalize=True).pooled


def vectors(answer):
    return np.array([one.embedding for one in answer.data], np.float32)


@pytest.mark.parametrize("encoding", ["float", "base64", openai.omit])
def test_embeddings(caller, expected, encoding):
    answer = caller.embeddings.create(model="embedder", input=TEXTS, encoding_format=encoding)
    assert [(one.index, one.object) for one in answer.data] == [(index, "embedding") for index in range(len(TEXTS))]
    assert (answer.object, answer.model) == ("list", "embedder")
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == sum(len(ids_of(text)) for text in TEXTS)
    made = ([np.frombuffer(base64.b64decode(one.embedding), "<f4") for one in answer.data]
            if encoding == "base64" else vectors(answer))
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("given, ids", [
    ("a cat", [ids_of("a cat")]),
    (["a cat"], [ids_of("a cat")]),
    ([2, 7, 9, 3], [[2, 7, 9, 3]]),
    ([[2, 7, 9, 3], [2, 3]], [[2, 7, 9, 3], [2, 3]]),
    ([[2] + [9] * 30], [[2] + [9] * 23]),
])
def test_forms_of_input(caller, client, given, ids):
    answer = caller.embeddings.create(model="embedder", input=given)
    np.testing.assert_array_equal(vectors(answer), client.encode("embedder", input_ids=ids, pooling="model").pooled)
    assert answer.usage.total_tokens == sum(map(len, ids))


@pytest.mark.parametrize("given", ["a cat", [2, 7, 9, 3]])
def test_dimensions(caller, given):
    whole = vectors(caller.embeddings.create(model="embedder", input=given))
    short = vectors(caller.embeddings.create(model="embedder", input=given, dimensions=5))
    np.testing.assert_allclose(short, whole[:, :5] / np.linalg.norm(whole[:, :5]), rtol=1e-6)


def test_more_ids_than_the_server_takes_in_a_request(caller, client):
    most = client.model("embedder").limits.max_request_tokens
    count = most // 20 + 2
    answer = caller.embeddings.create(model="embedder", input=[[2] + [5 + index % 50] * 19 for index in range(count)])
    made = vectors(answer)
    np.testing.assert_array_equal(made[50:100], made[:50])
    np.testing.assert_array_equal(made[7:8], client.encode("embedder", input_ids=[[2] + [12] * 19], pooling="model").pooled)


def test_the_only_model_that_embeds_needs_no_name(front, expected):
    answer = front.post("/v1/embeddings", {"input": TEXTS})
    assert answer.status == 200 and answer.json["model"] == "embedder"
    np.testing.assert_array_equal(np.array([one["embedding"] for one in answer.json["data"]], np.float32), expected)


def test_models(caller):
    assert [model.id for model in caller.models.list()] == ["classifier", "embedder", "reranker"]
    assert caller.models.retrieve("embedder").id == "embedder"
    with pytest.raises(openai.NotFoundError, match='no model is named "nobody"'):
        caller.models.retrieve("nobody")


def test_asyncio_and_calls_beside_one_another(front):
    async def main():
        async with openai.AsyncOpenAI(base_url=f"{front.url}/v1", api_key="unused") as aio:
            return await asyncio.gather(*(aio.embeddings.create(model="embedder", input=TEXTS[index % 4]) for index in range(60)))

    answers = asyncio.run(main())
    for index, answer in enumerate(answers):
        assert answer.data[0].embedding == answers[index % 4].data[0].embedding


def test_errors(caller):
    with pytest.raises(openai.NotFoundError) as refused:
        caller.embeddings.create(model="nobody", input="a")
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError, match="dimensions: expected 1..24.*; got 25") as refused:
        caller.embeddings.create(model="embedder", input="a", dimensions=25)
    assert (refused.value.type, refused.value.param) == ("invalid_request_error", "dimensions")
    with pytest.raises(openai.BadRequestError, match='"classifier" does not') as refused:
        caller.embeddings.create(model="classifier", input="a")
    assert refused.value.code == "model_not_supported"
