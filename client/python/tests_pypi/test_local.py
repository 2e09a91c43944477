"""Texts that are tokenized here, as for models whose tokenizer the server refuses: the same as the server makes of them."""
import asyncio
import json
import threading

import numpy as np
import pytest
from attendant_client import AsyncClient, Client, FailedPrecondition, messages
from attendant_client.text import AsyncTextModel, TextModel
from attendant_client.text.tokenizer import ModelTokenizer, Tokens
from programs import run_server
from text_cases import *  # noqa: F403
from text_cases import TEXTS
from text_models import letters_tokenizer, run_letters, write_text_model
from tokenizers import Tokenizer

REFUSED = "it has a part of an unknown kind"


def refuse(model):
    model.takes_texts, model.why_no_texts = False, REFUSED
    return model


class RefusedClient(Client):
    """A client of a server that takes no texts."""

    def model(self, *arguments, **options):
        return refuse(super().model(*arguments, **options))


class AsyncRefusedClient(AsyncClient):
    async def model(self, *arguments, **options):
        return refuse(await super().model(*arguments, **options))


@pytest.fixture(scope="module")
def letters(programs, tmp_path_factory):
    with run_letters(programs, tmp_path_factory.mktemp("letters")) as running:
        yield running


@pytest.fixture(scope="module")
def client(letters):
    with RefusedClient(letters.address) as made:
        yield made


@pytest.fixture(scope="module")
def connect(letters):
    return lambda: AsyncRefusedClient(letters.address)


@pytest.mark.parametrize("name", ["embedder", "bare"])
def test_vectors_are_those_of_the_server(letters, client, name):
    texts = [text * (1 + index % 3) for index in range(200) for text in TEXTS]
    with Client(letters.address) as other:
        for options in ({}, {"truncation": "left"}, {"normalize": True}, {"prompt": "x y "}):
            np.testing.assert_array_equal(TextModel(client, name).embed(texts, **options), TextModel(other, name).embed(texts, **options))


def test_scores_and_tokens_are_those_of_the_server(letters, client):
    pairs = [("a cat", text) for text in TEXTS] + TEXTS
    with Client(letters.address) as other:
        assert TextModel(client, "classifier").classify(pairs) == TextModel(other, "classifier").classify(pairs)
        assert TextModel(client, "reranker").rerank("a cat", TEXTS) == TextModel(other, "reranker").rerank("a cat", TEXTS)
        here, there = TextModel(client, "embedder"), TextModel(other, "embedder")
        assert here.count_tokens(pairs) == there.count_tokens(pairs)
        for text in [*pairs, " É🎉x\n", "\u200d a"]:
            assert here.tokens(text) == there.tokens(text)


def test_requests_that_turn_out_too_large_are_divided(programs, client, tmp_path):
    texts = ["b" * (1 + index % 22) for index in range(300)]
    with run_letters(programs, tmp_path, "--max-request-tokens", 96, "--max-batch-tokens", 40) as server:
        with RefusedClient(server.address) as small:
            np.testing.assert_array_equal(TextModel(small, "embedder").embed(texts), TextModel(client, "embedder").embed(texts))


def test_asyncio_tokenizes_on_other_threads(connect, monkeypatch):
    threads = []
    ids = ModelTokenizer.ids
    monkeypatch.setattr(ModelTokenizer, "ids", lambda *given: threads.append(threading.current_thread()) or ids(*given))

    async def run():
        async with connect() as client:
            await AsyncTextModel(client, "embedder").embed(["a"] * 3000)

    asyncio.run(run())
    assert len(threads) > 1 and threading.main_thread() not in threads


def test_letters_become_small_where_the_model_says_so(client):
    large = Tokenizer.from_str(letters_tokenizer())
    large.normalizer = None  # the file itself keeps capital letters, which its vocabulary does not have
    made = {}
    for lower_case in (False, True):
        found = messages.GetTokenizerResponse(tokenizer_json=large.to_str().encode(), lower_case=lower_case)
        (tokens,) = ModelTokenizer(found, client.model("embedder")).tokens([" A Cat"], None)
        made[lower_case] = Tokens.of(tokens).text
    assert made[False] == ["[CLS]", "[UNK]", "[UNK]", "[SEP]"]
    assert made[True] == ["[CLS]", "a", "c", "##a", "##t", "[SEP]"]


def test_a_tokenizer_of_an_unknown_kind_is_named():
    found = messages.GetTokenizerResponse(tokenizer_json=b'{"version": "1.0", "model": {"type": "Nothing"}}')
    tokenizer = ModelTokenizer(found, messages.GetModelResponse(name="org/m"))
    with pytest.raises(FailedPrecondition, match="model org/m does not accept texts: its tokenizer.json cannot be read: "):
        tokenizer.ids(["a"], None)


def test_a_tokenizer_that_the_server_refuses(programs, tmp_path):
    write_text_model(tmp_path)
    made = json.loads(letters_tokenizer())
    made["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "[aeiou](?!z)"}, "behavior": "Isolated", "invert": False}
    (tmp_path / "tokenizer.json").write_text(json.dumps(made))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    with run_server(programs, {"m": tmp_path}) as server, Client(server.address) as client:
        model = client.model()
        assert not model.takes_texts and "[aeiou](?!z)" in model.why_no_texts
        assert TextModel(client).tokens("abcdef").text == ["[CLS]", "a", "b", "##c", "##d", "e", "f", "[SEP]"]
        assert TextModel(client).embed(["abcdef"]).shape == (1, 24)


def test_texts_are_padded():
    padding = messages.TextPadding(length=8, id=1, is_left=True)
    found = messages.GetTokenizerResponse(tokenizer_json=letters_tokenizer().encode())
    model = messages.GetModelResponse(embeddings=messages.EmbeddingDescription(text_padding=padding))
    ((ids, _),) = ModelTokenizer(found, model).ids(["ab"], "right")
    assert len(ids) == 8 and ids[:4] == [1] * 4 and 1 not in ids[4:]
