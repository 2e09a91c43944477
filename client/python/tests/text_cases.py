"""Cases of TextModel and AsyncTextModel, tokenized by the server or by the client, on models that make a token of each letter.

The modules that import it have the fixtures `client`, and `connect`, which makes an asynchronous client.
"""
import asyncio

import numpy as np
import pytest
from attendant_client import FailedPrecondition, InvalidArgument, NotFound
from attendant_client.text import AsyncTextModel, LabelScore, TextModel, Tokens
from text_models import ids_of, pair_ids

PLAIN_TEXTS = ["a cat", "b", "the longest of these texts has most letters"]
TEXTS = ["a cat sat", "the dog", "c", "the quick brown fox jumps over the lazy dog", ""]


@pytest.fixture(scope="module")
def embedder(client):
    return TextModel(client, "embedder")


@pytest.fixture(scope="module")
def classifier(client):
    return TextModel(client, "classifier")


@pytest.fixture(scope="module")
def bare(client):
    return TextModel(client, "bare")


@pytest.fixture(scope="module")
def reranker(client):
    return TextModel(client, "reranker")


def pooled(client, texts, model="embedder", pooling="model", **options):
    """What the model makes of each text alone."""
    return np.concatenate([client.encode(model, input_ids=[ids_of(text)], pooling=pooling, **options).pooled for text in texts])


def raw_scores(client, query, texts):
    return np.array([client.encode("reranker", input_ids=[ids], token_type_ids=[types], pooling="classifier").pooled[0, 0]
                     for ids, types in (pair_ids(query, text) for text in texts)])


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


def test_asyncio_gives_the_same(connect, embedder, classifier, reranker):
    texts = ["b" * (1 + index % 20) for index in range(1200)]

    async def run():
        async with connect() as client:
            made = AsyncTextModel(client, "embedder")
            np.testing.assert_array_equal(await made.embed(texts), embedder.embed(texts))
            np.testing.assert_array_equal(await made.embed("a"), embedder.embed("a"))
            assert await made.count_tokens(TEXTS) == embedder.count_tokens(TEXTS)
            assert await made.tokens("a cat") == embedder.tokens("a cat")
            assert await AsyncTextModel(client, "classifier").classify(TEXTS) == classifier.classify(TEXTS)
            assert await AsyncTextModel(client, "reranker").rerank("cat", TEXTS) == reranker.rerank("cat", TEXTS)

    asyncio.run(run())


def test_texts_are_cut_where_the_model_was_trained_to_end(client, embedder):
    long = "abcdefghijklmnopqrstuvwxyz" * 2
    assert embedder.max_length == 24
    np.testing.assert_array_equal(embedder.embed(long), pooled(client, [long])[0])
    expected = client.encode("embedder", input_ids=[ids_of(long, "left")], pooling="model").pooled[0]
    np.testing.assert_array_equal(embedder.embed(long, truncation="left"), expected)
    assert not np.array_equal(expected, embedder.embed(long))


def test_texts_are_cut_on_the_side_of_their_tokenizer(connect, client):
    long, model = "abcdefghijklmnopqrstuvwxyz" * 2, TextModel(client, "leftward")
    for side, options in (("left", {}), ("left", {"truncation": "model"}), ("right", {"truncation": "right"})):
        expected = client.encode("leftward", input_ids=[ids_of(long, side)], pooling="model").pooled[0]
        np.testing.assert_array_equal(model.embed(long, **options), expected)
        assert model.tokens(long, **options).ids == ids_of(long, side)

    async def embed():
        async with connect() as other:
            return await AsyncTextModel(other, "leftward").embed(long)

    np.testing.assert_array_equal(asyncio.run(embed()), model.embed(long))


def test_long_texts_are_refused_if_asked_for(embedder):
    with pytest.raises(InvalidArgument, match=r"texts\[1\]: expected at most 24 tokens; got 42"):
        embedder.embed(["a", "a" * 40, "b"], truncation=None)
    with pytest.raises(InvalidArgument, match="text: expected at most 24 tokens; got 42"):
        embedder.tokens("a" * 40, truncation=None)


def test_prompts(client, embedder):
    asked = pooled(client, ["ask a cat"])[0]
    np.testing.assert_array_equal(embedder.embed("a cat", prompt="ask "), asked)
    np.testing.assert_array_equal(embedder.embed("a cat", prompt_name="query"), asked)
    with pytest.raises(InvalidArgument, match='prompt_name: expected one of .*query; got "passage"'):
        embedder.embed("a cat", prompt_name="passage")
    with pytest.raises(InvalidArgument, match="prompt_name: cannot be combined with prompt"):
        embedder.embed("a cat", prompt="ask ", prompt_name="query")


def test_default_prompts_of_rerankers(client):
    model, plain = TextModel(client, "instructed"), TextModel(client, "reranker")
    assert model.rerank("a cat", ["a dog", "b"]) == plain.rerank("ask a cat", ["a dog", "b"])
    assert model.classify("a cat", raw_scores=True) == plain.classify("ask a cat", raw_scores=True)


def test_a_model_without_prompts_says_so(bare):
    with pytest.raises(InvalidArgument, match='prompt_name: not supported by model "bare": it has no prompts'):
        bare.embed("a", prompt_name="query")


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
    written = ["[CLS]", "a", "##b", "[SEP]"]
    assert embedder.tokens("  Ab ") == Tokens(ids_of("ab"), written, [(0, 0), (2, 3), (3, 4), (0, 0)], [0] * 4)
    ids, types = pair_ids("a", "b")
    assert embedder.tokens(("a", "b")) == Tokens(ids, ["[CLS]", "a", "[SEP]", "b", "[SEP]"],
                                                 [(0, 0), (0, 1), (0, 0), (0, 1), (0, 0)], types)
    assert embedder.count_tokens(["a", "ab", ("a", "b")]) == [len(ids_of("a")), len(ids_of("ab")), 5]


@pytest.mark.parametrize("wrong", [[1], ["a", None], [("a", "b")]])
def test_embed_takes_texts_alone(embedder, wrong):
    with pytest.raises(InvalidArgument, match=rf"texts\[{len(wrong) - 1}\]: expected a text; got"):
        embedder.embed(wrong)


def test_classify_takes_texts_and_pairs(classifier):
    with pytest.raises(InvalidArgument, match=r"texts\[1\]: expected a text, or a pair of texts; got tuple"):
        classifier.classify(["a", ("a", "b", "c")])


def test_truncation_has_two_sides(embedder):
    with pytest.raises(InvalidArgument, match="truncation: expected .*right.*left.*; got 'middle'"):
        embedder.embed("a", truncation="middle")


def test_models_that_cannot_say_what_they_lack(client, embedder, classifier):
    with pytest.raises(FailedPrecondition, match="model embedder has no class scores"):
        embedder.classify("a")
    with pytest.raises(FailedPrecondition, match="model classifier is not a reranker: it has 3 classes, not 1"):
        classifier.rerank("a", ["b"])
    with pytest.raises(NotFound, match="model tiny has no tokenizer"):
        TextModel(client, "tiny").embed("a")
    with pytest.raises(NotFound, match='no model is named "nope"'):
        TextModel(client, "nope").embed("a")


def test_progress_is_shown_if_asked_for(embedder, capsys):
    embedder.embed(["ab" * (index % 9) for index in range(1100)], progress=True)
    assert "1100/1100 texts" in capsys.readouterr().err
    embedder.embed(["ab" * (index % 9) for index in range(1100)])
    assert capsys.readouterr().err == ""


def rows_of(client, text):
    """Returns the last layer's output for each token of a text."""
    return client.encode("bare", input_ids=[ids_of(text)]).hidden_states[0]


def test_texts_take_the_mean_without_modules(client):
    made = TextModel(client, "bare").embed(PLAIN_TEXTS)
    np.testing.assert_allclose(made, [rows_of(client, text).mean(0) for text in PLAIN_TEXTS], atol=1e-5)
    pooled = client.encode("bare", input_ids=[ids_of(PLAIN_TEXTS[0])], pooling="model").pooled[0]
    np.testing.assert_array_equal(TextModel(client, "pooler").embed(PLAIN_TEXTS[0]), pooled)  # ids still take the pooler
    assert np.abs(pooled - made[0]).max() > 0.01


def test_an_option_decides_for_texts_and_ids(client):
    made = TextModel(client, "last").embed(PLAIN_TEXTS)
    np.testing.assert_array_equal(made, [rows_of(client, text)[-1] for text in PLAIN_TEXTS])
    np.testing.assert_array_equal(client.encode("last", input_ids=[ids_of(PLAIN_TEXTS[0])], pooling="model").pooled, made[:1])


def without_prompt(client, prompt, text):
    """The mean of the text's own tokens and of [SEP], at length 1, as sentence-transformers makes it."""
    rows = client.encode("prompted", input_ids=[ids_of(prompt + text)]).hidden_states[0]
    mean = rows[len(ids_of(prompt)) - 1 if prompt else 0:].mean(0)
    return mean / np.linalg.norm(mean)


def test_prompts_are_left_out_of_vectors(client):
    model = TextModel(client, "prompted")
    for prompt, options in (("ask ", {"prompt_name": "query"}), ("x y", {"prompt": "x y"}), ("", {})):
        made = model.embed(PLAIN_TEXTS[:2], **options)
        np.testing.assert_allclose(made, [without_prompt(client, prompt, text) for text in PLAIN_TEXTS[:2]], atol=1e-5)


def test_a_special_token_is_left_of_a_text_that_its_prompt_fills(client):
    prompt = "x " * 30
    np.testing.assert_allclose(TextModel(client, "prompted").embed("a", prompt=prompt), without_prompt(client, prompt, "a"), atol=1e-5)


def test_prompts_that_are_left_out_are_not_cut_on_the_left(client):
    model = TextModel(client, "prompted")
    refusal = 'truncation: (TRUNCATE_LEFT|"left") not supported by model "prompted": it excludes its prompt from pooling; use '
    with pytest.raises(InvalidArgument, match=refusal):
        model.embed("a", prompt="x", truncation="left")
    model.embed("a", truncation="left")


def test_asyncio_leaves_prompts_out_too(connect, client):
    async def embed():
        async with connect() as other:
            return await AsyncTextModel(other, "prompted").embed(PLAIN_TEXTS, prompt_name="query")

    np.testing.assert_array_equal(asyncio.run(embed()), TextModel(client, "prompted").embed(PLAIN_TEXTS, prompt_name="query"))
