"""What is taken as texts, and what is refused before anything is sent. Needs no package of PyPI."""
import asyncio

import numpy as np
import pytest
from attendant_client import AsyncClient, Client, FailedPrecondition, InvalidArgument, encode_request, messages
from attendant_client.text import AsyncTextModel, TextModel
from attendant_client.text.rows import Wish
from attendant_client.text.tasks import Tasks, as_list
from attendant_client.texts import as_texts, check_texts

HALVES = ["a \ud83d b", "\udc00", "a cat \ud83d"]


@pytest.fixture
def tasks():
    """Those of a model that embeds, reranks and classifies; it has no server, which a refused text never reaches."""
    return Tasks(messages.GetModelResponse(name="m", pooled_width=4, classes=1), None)


def test_a_model_without_vectors_says_so():
    with pytest.raises(FailedPrecondition, match="model bare has no text vectors: its files define no pooling"):
        Tasks(messages.GetModelResponse(name="bare"), None).embed(["a"], Wish("model"))


class Column:
    """A column of a table, such as pandas': it has labels of its own."""

    def __iter__(self):
        return iter(["a", "b"])

    def __getitem__(self, label):
        raise KeyError(label)


@pytest.mark.parametrize("texts", [(text for text in ("a", "b")), map(str.lower, "AB"), {1: "a", 2: "b"}.values(), Column(),
                                   np.array(["a", "b"]), ("a", "b"), ["a", "b"]], ids=lambda given: type(given).__name__)
def test_texts_may_come_from_any_iterable_that_has_an_order(texts):
    made, alone = as_list(texts)
    assert list(made) == ["a", "b"] and len(made) == 2 and not alone


def test_a_list_is_not_copied():
    texts = ["a", "b"]
    assert as_texts("texts", texts) is texts and as_list("a") == (["a"], True)


@pytest.mark.parametrize("texts", [b"ab", {"a": 1}, {"a", "b"}, 3, None])
def test_what_is_no_list_is_refused_by_its_kind(texts):
    with pytest.raises(InvalidArgument, match=f"texts: expected a list of texts; got {type(texts).__name__}") as refused:
        as_list(texts)
    assert refused.value.field == "texts"


def test_a_text_alone_is_no_list_where_there_must_be_one():
    with Client("localhost:1") as client:
        model = TextModel(client, "m")
        for call in (lambda: model.rerank("q", "a text"), lambda: model.count_tokens("a text")):
            with pytest.raises(InvalidArgument, match="texts: expected a list of texts; got str 'a text'"):
                call()

    async def calls():
        async with AsyncClient("localhost:1") as client:
            model = AsyncTextModel(client, "m")
            with pytest.raises(InvalidArgument, match="texts: expected a list of texts; got str 'a text'"):
                await model.rerank("q", "a text")
            with pytest.raises(InvalidArgument, match="texts: expected a list of texts; got str 'a text'"):
                await model.count_tokens("a text")

    asyncio.run(calls())


@pytest.mark.parametrize("text", HALVES)
def test_half_a_surrogate_pair_is_named(tasks, text):
    half = next(character for character in text if "\ud800" <= character <= "\udfff")
    expected = ("expected a text of Unicode characters; "
                f"got half a surrogate pair at character {text.index(half)}, {ascii(half)}; "
                "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') mends or replaces it")
    calls = {
        "texts[1]": lambda: tasks.embed(["a", text], Wish("model")),
        "query": lambda: tasks.rerank(text, ["a"], Wish("classifier")),
        "texts[0]": lambda: tasks.classify([("a", text)], Wish("classifier")),
        "text_pairs[0]": lambda: encode_request(texts=["a"], text_pairs=[text]),
        "prompt": lambda: encode_request(texts=["a"], prompt=text),
    }
    for field, call in calls.items():
        with pytest.raises(InvalidArgument) as refused:
            call()
        assert refused.value.message == f"{field}: {expected}"
    mended = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    check_texts("texts", [mended, ("a", mended)])


def test_whole_pairs_and_other_planes_are_taken():
    check_texts("texts", ["\U0001f600", "é", "\uffff", ""])
    split = "\ud83d\ude00"  # as a reader of JSON makes it that does not join them
    with pytest.raises(InvalidArgument):
        check_texts("texts", [split])
    assert split.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == "\U0001f600"
