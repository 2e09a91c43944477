"""How texts become vectors: without modules.json, with options of --model, and without the tokens of prompts."""
import asyncio
import json

import numpy as np
import pytest
from attendant_client import AsyncClient, Client, InvalidArgument
from attendant_client.text import AsyncTextModel, TextModel
from programs import run_server
from text_models import ids_of, write_text_model

TEXTS = ["a cat", "b", "the longest of these texts has most letters"]


@pytest.fixture(scope="module")
def server(programs, tmp_path_factory):
    """`plain` has a pooler and no modules.json; `prompted` leaves prompts out; the others are `plain` with an option."""
    plain, prompted = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("prompted")
    write_text_model(plain)
    write_text_model(prompted, pooling="mean")
    config = prompted / "1_Pooling" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "include_prompt": False}))
    with run_server(programs, {"plain": plain, "prompted": prompted, "pooler": f"{plain},pooling=pooler",
                               "last": f"{plain},pooling=last_token"}) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with Client(server.address) as made:
        yield made


def rows_of(client, text):
    """Returns the last layer's output for each token of a text."""
    return client.encode("plain", input_ids=[ids_of(text)]).hidden_states[0]


def test_texts_take_the_mean_without_modules(client):
    made = TextModel(client, "plain").embed(TEXTS)
    np.testing.assert_allclose(made, [rows_of(client, text).mean(0) for text in TEXTS], atol=1e-5)
    pooled = client.encode("plain", input_ids=[ids_of(TEXTS[0])], pooling="model").pooled[0]
    np.testing.assert_array_equal(TextModel(client, "pooler").embed(TEXTS[0]), pooled)  # ids still take the pooler
    assert np.abs(pooled - made[0]).max() > 0.01


def test_an_option_decides_for_texts_and_ids(client):
    made = TextModel(client, "last").embed(TEXTS)
    np.testing.assert_array_equal(made, [rows_of(client, text)[-1] for text in TEXTS])
    np.testing.assert_array_equal(client.encode("last", input_ids=[ids_of(TEXTS[0])], pooling="model").pooled, made[:1])


def expected(client, prompt, text):
    """The mean of the text's own tokens and of [SEP], at length 1, as sentence-transformers makes it."""
    rows = client.encode("prompted", input_ids=[ids_of(prompt + text)]).hidden_states[0]
    mean = rows[len(ids_of(prompt)) - 1 if prompt else 0:].mean(0)
    return mean / np.linalg.norm(mean)


def test_prompts_are_left_out_of_vectors(client):
    model = TextModel(client, "prompted")
    for prompt, options in (("ask ", {"prompt_name": "query"}), ("x y", {"prompt": "x y"}), ("", {})):
        made = model.embed(TEXTS[:2], **options)
        np.testing.assert_allclose(made, [expected(client, prompt, text) for text in TEXTS[:2]], atol=1e-5)


def test_a_special_token_is_left_of_a_text_that_its_prompt_fills(client):
    prompt = "x " * 30
    np.testing.assert_allclose(TextModel(client, "prompted").embed("a", prompt=prompt), expected(client, prompt, "a"), atol=1e-5)


def test_prompts_that_are_left_out_are_not_cut_on_the_left(client):
    model = TextModel(client, "prompted")
    with pytest.raises(InvalidArgument, match='truncation: expected "right" or None with a prompt that the model leaves out'):
        model.embed("a", prompt="x", truncation="left")
    model.embed("a", truncation="left")


def test_asyncio_does_the_same(server, client):
    async def embed():
        async with AsyncClient(server.address) as other:
            return [await AsyncTextModel(other, "plain").embed(TEXTS),
                    await AsyncTextModel(other, "prompted").embed(TEXTS, prompt_name="query")]

    plain, prompted = asyncio.run(embed())
    np.testing.assert_array_equal(plain, TextModel(client, "plain").embed(TEXTS))
    np.testing.assert_array_equal(prompted, TextModel(client, "prompted").embed(TEXTS, prompt_name="query"))
