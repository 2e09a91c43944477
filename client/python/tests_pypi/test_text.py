"""TextModel and AsyncTextModel, against models whose tokenizer makes a token of each letter."""
import asyncio
import threading

import numpy as np
import pytest
from attendant_client import AsyncClient, Client, FailedPrecondition, InvalidArgument, NotFound, messages
from attendant_client.text import AsyncTextModel, LabelScore, TextModel, Tokens
from attendant_client.text.plan import FEW_CHARACTERS, Wish
from attendant_client.text.tasks import Tasks
from attendant_client.text.tokenizer import ModelTokenizer
from programs import run_server
from text_models import ids_of, make_tokenizer, write_text_model

TEXTS = ["a cat sat", "the dog", "c", "the quick brown fox jumps over the lazy dog", ""]


@pytest.fixture(scope="module")
def embedder(client):
    return TextModel(client, "embedder")


@pytest.fixture(scope="module")
def classifier(client):
    return TextModel(client, "classifier")


@pytest.fixture(scope="module")
def reranker(client):
    return TextModel(client, "reranker")


def pooled(client, texts, model="embedder", pooling="model", **options):
    """What the model makes of each text alone."""
    return np.concatenate([client.encode(model, input_ids=[ids_of(text)], pooling=pooling, **options).pooled for text in texts])


def pair_ids(query, text, most=24):
    made = make_tokenizer()
    made.enable_truncation(most)
    encoded = made.encode(query, text)
    return encoded.ids, encoded.type_ids


def raw_scores(client, query, texts):
    return np.array([client.encode("reranker", input_ids=[ids], token_type_ids=[types], pooling="classifier").pooled[0, 0]
                     for ids, types in (pair_ids(query, text) for text in texts)])


def test_letters_become_small_where_the_model_says_so(client):
    large = make_tokenizer()
    large.normalizer = None  # the file itself keeps capital letters, which its vocabulary does not have
    made = {}
    for lower_case in (False, True):
        found = messages.GetTokenizerResponse(tokenizer_json=large.to_str().encode(), lower_case=lower_case)
        made[lower_case] = ModelTokenizer(found, client.model("embedder")).tokens(" A Cat").text
    assert made[False] == ["[CLS]", "[UNK]", "[UNK]", "[SEP]"]
    assert made[True] == ["[CLS]", "a", "c", "##a", "##t", "[SEP]"]


def test_embed_keeps_the_order(client, embedder):
    made = embedder.embed(TEXTS)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, pooled(client, TEXTS))


def test_texts_may_come_from_generators(embedder, classifier, reranker):
    np.testing.assert_array_equal(embedder.embed(text for text in TEXTS), embedder.embed(TEXTS))
    assert classifier.classify(map(str, TEXTS)) == classifier.classify(TEXTS)
    assert reranker.rerank("cat", iter(TEXTS)) == reranker.rerank("cat", TEXTS)
    assert embedder.count_tokens(iter(TEXTS)) == embedder.count_tokens(TEXTS)
    with pytest.raises(InvalidArgument, match=r"texts\[1\]: expected a text of Unicode characters; got half a surrogate pair"):
        embedder.embed(["a", "\ud83d"])


def test_a_text_alone_is_one_vector(client, embedder):
    np.testing.assert_array_equal(embedder.embed("a cat sat"), pooled(client, ["a cat sat"])[0])


def test_no_texts_are_no_rows(embedder):
    assert embedder.embed([]).shape == (0, 24)


def test_many_texts_go_over_a_stream(client, embedder):
    texts = [chr(ord("a") + index % 26) * (1 + index * 7 % 30) for index in range(1500)]
    made = embedder.embed(texts)
    distinct = sorted(set(texts))
    expected = dict(zip(distinct, pooled(client, distinct)))
    for row, text in zip(made, texts):
        np.testing.assert_array_equal(row, expected[text])


def test_asyncio_gives_the_same(letters, embedder, classifier, reranker):
    texts = ["b" * (1 + index % 20) for index in range(1200)]

    async def run():
        async with AsyncClient(letters.address) as client:
            made = AsyncTextModel(client, "embedder")
            np.testing.assert_array_equal(await made.embed(texts), embedder.embed(texts))
            np.testing.assert_array_equal(await made.embed("a"), embedder.embed("a"))
            assert await made.count_tokens(TEXTS) == embedder.count_tokens(TEXTS)
            assert await made.tokens("a cat") == embedder.tokens("a cat")
            assert await AsyncTextModel(client, "classifier").classify(TEXTS) == classifier.classify(TEXTS)
            assert await AsyncTextModel(client, "reranker").rerank("cat", TEXTS) == reranker.rerank("cat", TEXTS)

    asyncio.run(run())


def test_asyncio_tokenizes_few_characters_on_its_own_thread(letters, monkeypatch):
    there = []
    tokenize = ModelTokenizer.ids

    def ids(tokenizer, texts, truncation):
        there.append(threading.current_thread() is threading.main_thread())
        return tokenize(tokenizer, texts, truncation)

    monkeypatch.setattr(ModelTokenizer, "ids", ids)

    async def run():
        async with AsyncClient(letters.address) as client:
            model = AsyncTextModel(client, "embedder")
            await model.embed("a")  # which makes the tokenizer
            await model.embed(["a" * FEW_CHARACTERS])
            await model.embed(["a" * FEW_CHARACTERS, "a"])
            await model.embed("a", truncation="left")
            await model.embed("a")

    asyncio.run(run())
    assert there == [False, True, False, False, True]


def test_an_address_is_enough(letters):
    assert TextModel(letters.address, "embedder").embed("a").shape == (24,)


def test_texts_are_cut_where_the_model_was_trained_to_end(client, embedder):
    long = "abcdefghijklmnopqrstuvwxyz" * 2
    assert embedder.max_length == 24
    np.testing.assert_array_equal(embedder.embed(long), pooled(client, [long])[0])
    left = make_tokenizer()
    left.enable_truncation(24, direction="left")
    expected = client.encode("embedder", input_ids=[left.encode(long).ids], pooling="model").pooled[0]
    np.testing.assert_array_equal(embedder.embed(long, truncation="left"), expected)
    assert not np.array_equal(expected, embedder.embed(long))


def test_long_texts_are_refused_if_asked_for(embedder):
    with pytest.raises(InvalidArgument, match=r"texts\[1\]: expected at most 24 tokens; got 42"):
        embedder.embed(["a", "a" * 40, "b"], truncation=None)
    with pytest.raises(InvalidArgument, match="text: expected at most 24 tokens; got 42"):
        embedder.tokens("a" * 40, truncation=None)


def test_prompts(client, embedder):
    asked = pooled(client, ["ask a cat"])[0]
    np.testing.assert_array_equal(embedder.embed("a cat", prompt="ask "), asked)
    np.testing.assert_array_equal(embedder.embed("a cat", prompt_name="query"), asked)
    with pytest.raises(InvalidArgument, match='prompt_name: expected one of query; got "passage"'):
        embedder.embed("a cat", prompt_name="passage")
    with pytest.raises(InvalidArgument, match="prompt_name: expected none beside prompt; got query"):
        embedder.embed("a cat", prompt="ask ", prompt_name="query")


def test_a_model_without_prompts_says_so(classifier):
    with pytest.raises(InvalidArgument, match="prompt_name: expected none, as the model has no prompts"):
        classifier._tasks().tokenizer.prompt(None, "query")


def test_normalize_and_dimensions(client, embedder):
    np.testing.assert_array_equal(embedder.embed(TEXTS, normalize=True), pooled(client, TEXTS, normalize=True))
    whole = embedder.embed(TEXTS)  # of length 1, as the model's files say
    short = embedder.embed(TEXTS, dimensions=8)
    assert short.shape == (5, 8) and short.dtype == np.float32
    np.testing.assert_allclose(short, whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True), rtol=1e-5)
    for wrong in (0, 25):
        with pytest.raises(InvalidArgument, match=rf"dimensions: expected 1\.\.24, the width of the model's vectors; got {wrong}"):
            embedder.embed(TEXTS, dimensions=wrong)


def test_rerank(client, reranker):
    raw = raw_scores(client, "cat", TEXTS)
    order = np.argsort(-raw, kind="stable")
    ranked = reranker.rerank("cat", TEXTS)
    assert [one.index for one in ranked] == list(order)
    assert [one.text for one in ranked] == [TEXTS[index] for index in order]
    np.testing.assert_allclose([one.score for one in ranked], 1 / (1 + np.exp(-raw[order])), rtol=1e-6)
    best = reranker.rerank("cat", TEXTS, top_n=2, raw_scores=True)
    assert [one.score for one in best] == list(raw[order][:2])


def test_classify(client, classifier):
    raw = pooled(client, TEXTS, "classifier", "classifier").astype(np.float64)
    exponents = np.exp(raw - raw.max(axis=1, keepdims=True))
    expected = exponents / exponents.sum(axis=1, keepdims=True)
    for scores, row, unscaled in zip(classifier.classify(TEXTS), expected, classifier.classify(TEXTS, raw_scores=True)):
        order = np.argsort(-row)
        assert [one.label for one in scores] == [f"class {index}" for index in order]
        np.testing.assert_allclose([one.score for one in scores], row[order], rtol=1e-6)
        assert sum(one.score for one in scores) == pytest.approx(1)
        assert [one.label for one in unscaled] == [one.label for one in scores]
    assert classifier.classify("a") == classifier.classify(["a"])
    assert isinstance(classifier.classify("a")[0][0], LabelScore)


def test_pairs_have_types(client, classifier):
    ids, types = pair_ids("a", "b")
    expected = client.encode("classifier", input_ids=[ids], token_type_ids=[types], pooling="classifier").pooled[0]
    scores = {one.label: one.score for one in classifier.classify([("a", "b")], raw_scores=True)[0]}
    assert [scores[f"class {index}"] for index in range(3)] == [pytest.approx(float(one)) for one in expected]
    mixed = classifier.classify(["a", ("a", "b")])
    assert mixed == [classifier.classify("a")[0], classifier.classify([("a", "b")])[0]]


def test_tokens(embedder):
    expected = make_tokenizer().encode("  Ab ")
    assert embedder.tokens("  Ab ") == Tokens(expected.ids, expected.tokens, expected.offsets, [0] * len(expected.ids))
    assert embedder.count_tokens(["a", "ab", ("a", "b")]) == [len(ids_of("a")), len(ids_of("ab")), 5]


@pytest.mark.parametrize("wrong", [[1], ["a", None], [("a", "b")]])
def test_embed_takes_texts_alone(embedder, wrong):
    with pytest.raises(InvalidArgument, match=rf"texts\[{len(wrong) - 1}\]: expected a text; got"):
        embedder.embed(wrong)


def test_classify_takes_texts_and_pairs(classifier):
    with pytest.raises(InvalidArgument, match=r"texts\[1\]: expected a text, or a pair of texts; got tuple"):
        classifier.classify(["a", ("a", "b", "c")])


def test_truncation_has_two_sides(embedder):
    with pytest.raises(InvalidArgument, match='truncation: expected "right", "left" or None; got \'middle\''):
        embedder.embed("a", truncation="middle")


def test_models_that_cannot_say_what_they_lack(client, embedder, classifier):
    with pytest.raises(FailedPrecondition, match="model bare makes no vector of a text: its files say nothing about pooling"):
        Tasks(messages.GetModelResponse(name="bare"), messages.GetTokenizerResponse()).plan_embed([], None, None, Wish("model"))
    with pytest.raises(FailedPrecondition, match="model embedder scores no classes"):
        embedder.classify("a")
    with pytest.raises(FailedPrecondition, match="model classifier is no reranker: it has 3 classes, not 1"):
        classifier.rerank("a", ["b"])
    with pytest.raises(NotFound, match="model tiny has no tokenizer"):
        TextModel(client, "tiny").embed("a")
    with pytest.raises(NotFound, match='no model is named "nope"'):
        TextModel(client, "nope").embed("a")


def test_a_tokenizer_of_an_unknown_kind_is_named():
    found = messages.GetTokenizerResponse(tokenizer_json=b'{"version": "1.0", "model": {"type": "Nothing"}}')
    tokenizer = ModelTokenizer(found, messages.GetModelResponse(name="org/m"))
    with pytest.raises(FailedPrecondition, match="model org/m takes no texts: its tokenizer.json cannot be read: "):
        tokenizer.ids(["a"])


def test_progress_is_shown_if_asked_for(embedder, capsys):
    embedder.embed(["ab" * (index % 9) for index in range(1100)], progress=True)
    assert "1100/1100" in capsys.readouterr().err
    embedder.embed(["ab" * (index % 9) for index in range(1100)])
    assert capsys.readouterr().err == ""


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
