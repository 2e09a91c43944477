"""Texts that the server tokenizes."""
import asyncio

import numpy as np
import pytest
from attendant_client import AsyncClient, Client, InvalidArgument
from attendant_client.text import AsyncTextModel, TextModel
from programs import run_server
from text_cases import *  # noqa: F403
from text_cases import TEXTS
from text_models import ids_of, pair_ids, run_letters, write_text_model

LONG = "x" * 40  # as many tokens, and more than texts may have: 24


@pytest.fixture(scope="module")
def client(letters):
    with Client(letters.address) as made:
        yield made


@pytest.fixture(scope="module")
def connect(letters):
    return lambda: AsyncClient(letters.address)


@pytest.fixture(scope="module", params=["sync", "async"])
def call(request, letters):
    """Calls a method of a client of either kind, for models of a server or of the usual one."""
    def run(method, *arguments, server=letters, **options):
        async def main():
            async with AsyncClient(server.address) as client:
                return await getattr(client, method)(*arguments, **options)

        if request.param == "async":
            return asyncio.run(main())
        with Client(server.address) as client:
            return getattr(client, method)(*arguments, **options)

    return run


@pytest.fixture(scope="module")
def narrow(programs, tmp_path_factory):
    """A server that takes few tokens in a request."""
    flags = ("--max-request-tokens", 96, "--max-batch-tokens", 40)
    with run_letters(programs, tmp_path_factory.mktemp("narrow"), *flags) as running:
        yield running


def test_encode_takes_texts(call, client):
    made = call("encode", "embedder", texts=iter(TEXTS), truncation="right", pooling="model", intermediate_layers=[0],
                attention_layers=[1])
    ids = client.encode("embedder", input_ids=[ids_of(text) for text in TEXTS], pooling="model", intermediate_layers=[0],
                        attention_layers=[1])
    assert made.lengths == [len(ids_of(text)) for text in TEXTS]
    assert made.tokens is None and made.execution.tokenize_ns > 0
    np.testing.assert_array_equal(made.pooled, ids.pooled)
    for name in ("hidden_states", "intermediate", "attention_probabilities"):
        found, expected = getattr(made, name), getattr(ids, name)
        for one, other in zip(found, expected) if name == "hidden_states" else zip(*(next(iter(each.values())) for each in (found, expected))):
            np.testing.assert_array_equal(one, other)


def test_encode_takes_pairs_and_returns_tokens(call, client):
    ids, types = pair_ids("a cat", "dog")
    made = call("encode", "classifier", texts=["a cat"], text_pairs=["dog"], pooling="classifier", return_tokens=True)
    expected = client.encode("classifier", input_ids=[ids], token_type_ids=[types], pooling="classifier")
    np.testing.assert_array_equal(made.pooled, expected.pooled)
    (tokens,) = made.tokens
    assert (list(tokens.ids), list(tokens.token_type_ids)) == (ids, types)
    assert list(tokens.sources) == [2, 0, 0, 0, 0, 2, 1, 1, 1, 2]


def test_encode_puts_prompts_before_texts(call, client):
    asked = client.encode("embedder", input_ids=[ids_of("ask a cat")], pooling="model").pooled
    for options in ({"prompt": "ask "}, {"prompt_name": "query"}):
        np.testing.assert_array_equal(call("encode", "embedder", texts=["a cat"], pooling="model", **options).pooled, asked)


def test_tokenize(call):
    first, second = call("tokenize", "bare", texts=["\tAé b", "c"], prompt="x ")
    assert list(first.tokens) == ["[CLS]", "x", "a", "##e", "b", "[SEP]"]
    assert list(zip(first.begins, first.ends)) == [(0, 0), (0, 0), (1, 2), (2, 3), (4, 5), (0, 0)]
    assert list(zip(first.byte_begins, first.byte_ends)) == [(0, 0), (0, 0), (1, 2), (2, 4), (5, 6), (0, 0)]
    assert list(second.tokens) == ["[CLS]", "x", "c", "[SEP]"]
    assert call("tokenize", "bare", texts=[]) == []
    (pair,) = call("tokenize", "bare", texts=["a"], text_pairs=["b"], special_tokens=False)
    assert list(pair.tokens) == ["a", "b"]
    (short,) = call("tokenize", "bare", texts=[LONG], truncation="left")
    assert list(short.ids) == ids_of(LONG, "left") and short.truncated
    with pytest.raises(TypeError, match="unexpected argument 'pooling'"):
        call("tokenize", "bare", texts=["a"], pooling="mean")


# Each letter is a token, and texts were taken to have one in four bytes: requests are too large at first.
def test_requests_that_turn_out_too_large_are_divided(call, client, narrow):
    texts = [("ab cd" * (1 + index % 5))[:22] for index in range(300)]
    made = call("encode", "embedder", server=narrow, texts=texts, pooling="model", return_tokens=True)
    expected = client.encode("embedder", texts=texts, pooling="model", return_tokens=True)
    np.testing.assert_array_equal(made.pooled, expected.pooled)
    assert made.lengths == expected.lengths and made.tokens == expected.tokens
    assert made.execution.tokens == sum(made.lengths)
    assert call("tokenize", "embedder", server=narrow, texts=texts) == expected.tokens


def test_so_are_those_with_large_answers(call, programs, client, tmp_path):
    with run_letters(programs, tmp_path, "--max-answer-bytes", 1 << 20) as server:
        texts = ["abc" * (1 + index % 7) for index in range(400)]
        made = call("encode", "embedder", server=server, texts=texts, return_tokens=True, attention_layers=[0, 1])
        expected = client.encode("embedder", texts=texts, return_tokens=True, attention_layers=[0, 1])
        assert made.tokens == expected.tokens
        for layer in (0, 1):
            for one, other in zip(made.attention_probabilities[layer], expected.attention_probabilities[layer], strict=True):
                np.testing.assert_array_equal(one, other)


def test_text_models_of_such_servers(client, narrow):
    texts = ["b" * (1 + index % 22) for index in range(300)]
    with Client(narrow.address) as small:
        for name in ("embedder", "bare"):
            np.testing.assert_array_equal(TextModel(small, name).embed(texts), TextModel(client, name).embed(texts))
        assert TextModel(small, "reranker").rerank("b c", texts) == TextModel(client, "reranker").rerank("b c", texts)
        mixed = [("a", text) if index % 2 else text for index, text in enumerate(texts)]
        assert TextModel(small, "classifier").classify(mixed) == TextModel(client, "classifier").classify(mixed)
        assert TextModel(small, "embedder").count_tokens(mixed) == TextModel(client, "embedder").count_tokens(mixed)


@pytest.mark.parametrize("place", [0, 7, 299])
def test_errors_name_texts_by_the_indices_of_the_caller(call, narrow, place):
    texts = ["ab"] * 300
    texts[place] = "y" * 60
    with pytest.raises(InvalidArgument, match=rf"^INVALID_ARGUMENT: texts\[{place}\]: expected at most 48 tokens; got 62; set truncation .truncate over HTTP. to cut"):
        call("encode", "embedder", server=narrow, texts=texts)
    with pytest.raises(InvalidArgument, match=rf"^INVALID_ARGUMENT: text_pairs\[{place}\]: expected at most 48 tokens in a pair; got 64; set truncation .truncate over HTTP. to cut"):
        call("encode", "classifier", server=narrow, texts=["a"] * 300, text_pairs=texts)
    with pytest.raises(InvalidArgument, match=rf"texts\[{place}\]: expected at most 24 tokens; got 42") as refused:
        with Client(narrow.address) as client:
            TextModel(client, "embedder").embed(["ab"] * place + [LONG] + ["ab"], truncation=None)
    assert refused.value.field == "texts"


def test_a_text_with_more_tokens_than_a_request_may_have(call, programs, tmp_path):
    with run_letters(programs, tmp_path, "--max-request-tokens", 32) as server:
        for method in ("encode", "tokenize"):
            with pytest.raises(InvalidArgument, match=r"^INVALID_ARGUMENT: texts\[2\]: expected at most 32 tokens in total"):
                call(method, "bare", server=server, texts=["a", "b", LONG])


@pytest.mark.parametrize("options, message", [
    ({"texts": []}, "texts: expected at least one text; got an empty list"),
    ({"texts": "a text"}, "texts: expected a list of texts; got str 'a text'"),
    ({"texts": ["a", 1]}, r"texts\[1\]: expected a text; got int 1"),
    ({"texts": ["a"], "text_pairs": ["b", "c"]}, "text_pairs: expected one for each of 1 texts; got 2"),
    ({"texts": ["a"], "input_ids": [[1]]}, "hidden_states: expected exactly one of .*; got input_ids and texts"),
    ({"input_ids": [[1]], "text_pairs": ["a"]}, "text_pairs: requires texts"),
    ({"input_ids": [[1]], "prompt": "a"}, "prompt: requires texts"),
    ({"texts": ["a"], "lengths": [3]}, "lengths: cannot be combined with texts"),
    ({"texts": ["a"], "attention_mask": [[1, 1, 1]]}, "attention_mask: cannot be combined with texts"),
    ({"texts": ["a"], "prompt": "b", "prompt_name": "query"}, 'prompt_name: cannot be combined with prompt'),
    ({"texts": ["a"], "truncation": "middle"}, "truncation: expected one of .*right, left; got 'middle'"),
])
def test_what_does_not_go_together_is_refused(client, options, message):
    with pytest.raises(InvalidArgument, match=message):
        client.encode("embedder", **options)


def test_rows_of_texts_may_be_chosen(client):
    whole = client.encode("embedder", texts=["ab", "c"])
    made = client.encode("embedder", texts=["ab", "c"], query_rows=[5, 0])
    np.testing.assert_array_equal(made.hidden_states, np.concatenate(whole.hidden_states)[[5, 0]])


def test_unknown_arguments_are_named(client):
    with pytest.raises(TypeError, match="unexpected argument 'text'; expected one of"):
        client.encode("embedder", texts=["a"], text="b")


def test_any_number_of_texts_in_one_call(programs, tmp_path):
    write_text_model(tmp_path, pooling="mean")
    texts = [text * (1 + number % 3) for number in range(400) for text in TEXTS]
    flags = ("--max-queue-seconds", "1ms", "--max-queue-requests", 4, "--max-inflight", 6)

    async def main(address):
        async with AsyncClient(address, wait=False) as client:
            return await asyncio.gather(*(AsyncTextModel(client, "m").embed(texts) for _ in range(3)))

    with run_server(programs, {"m": tmp_path}, *flags) as server, Client(server.address, wait=False) as client:
        expected = TextModel(client, "m").embed(texts)
        assert expected.shape == (2000, 24)
        for found in asyncio.run(main(server.address)):
            np.testing.assert_array_equal(found, expected)


def late_scores(client, query, texts):
    vectors = client.encode("m3", input_ids=[ids_of(query)], task="query", return_token_vectors=True).token_vectors[0][1:]
    found = []
    for text in texts:
        own = client.encode("m3", input_ids=[ids_of(text)], return_token_vectors=True).token_vectors[0][1:]
        found.append((vectors.astype(np.float64) @ own.T).max(axis=1).sum())
    return np.array(found)


def test_rerank_by_late_interaction(client, connect):
    expected = late_scores(client, "cat", TEXTS)
    order = np.argsort(-expected, kind="stable")
    ranked = TextModel(client, "m3").rerank("cat", TEXTS)
    assert [one.index for one in ranked] == list(order)
    np.testing.assert_allclose([one.score for one in ranked], expected[order], rtol=1e-5)
    assert TextModel(client, "m3").rerank("cat", TEXTS, raw_scores=True, top_n=2) == ranked[:2]

    async def run():
        async with connect() as asynchronous:
            assert await AsyncTextModel(asynchronous, "m3").rerank("cat", TEXTS) == ranked

    asyncio.run(run())


def test_one_call_returns_all_vectors(client):
    answer = client.encode("m3", texts=["a cat", "dog"], pooling="model", return_sparse=True, return_token_vectors=True,
                           query_vectors=np.eye(5, dtype=np.float32))
    assert answer.pooled.shape == (2, 24) and answer.scores.shape == (2,) and len(answer.token_vectors) == 2
    assert [rows.shape for rows in answer.token_vectors] == [(6, 5), (5, 5)]
    assert len(answer.sparse) == 2
