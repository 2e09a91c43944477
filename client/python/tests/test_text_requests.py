"""The division of lists of texts, without a server."""
import pytest
from attendant_client import Encoded, InvalidArgument, NotFound, StreamAnswer, encode_request, messages
from attendant_client.text_requests import MOST_TEXTS, EncodedTexts, TextRequests

ROOMY = messages.Limits(max_request_tokens=16384, max_batch_tokens=1024, max_request_bytes=1 << 24, max_answer_bytes=1 << 28)


class Kept(TextRequests):
    """Keeps the responses by their texts."""

    def __init__(self, texts, limits=ROOMY, by_size=False, **options):
        embeddings = messages.EmbeddingDescription(max_sequence_length=100)
        layer = messages.LayerDescription(hidden_size=8, heads=2)
        super().__init__(texts, messages.GetModelResponse(limits=limits, embeddings=embeddings, layer=layer), options, by_size)
        self.kept = []

    def make(self, group):
        return encode_request(texts=[self.texts[index] for index in group])

    def place(self, group, answer):
        self.kept.append((group, answer))


def limits(**changed):
    made = messages.Limits()
    made.CopyFrom(ROOMY)
    for name, value in changed.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("texts, options, expected", [
    ([], {}, []),
    (["a"], {}, [[0]]),
    (["abcd"] * 5, {"limits": limits(max_batch_tokens=9)}, [[0, 1, 2], [3, 4]]),  # 3 tokens each
    (["é" * 4] * 3, {"limits": limits(max_batch_tokens=8)}, [[0, 1], [2]]),  # bytes count
    (["a" * 4000] * 3, {"truncation": "right", "limits": limits(max_batch_tokens=200)}, [[0, 1], [2]]),
    (["a" * 4000] * 3, {"limits": limits(max_batch_tokens=200)}, [[0], [1], [2]]),
    (["a", ("a", "b"), ("a", "b"), "a"], {}, [[0], [1, 2], [3]]),  # a request has pairs or none
    (["a" * 1000] * 4, {"limits": limits(max_request_bytes=(64 << 10) + 2100)}, [[0, 1], [2, 3]]),
    (["a" * 40] * 4, {"limits": limits(max_answer_bytes=(64 << 10) + 12 * 8 * 4 * 2)}, [[0, 1], [2, 3]]),
    (["a" * 40, "a" * 9, "a" * 50, "a"], {"by_size": True, "limits": limits(max_batch_tokens=26)}, [[2, 0], [1, 3]]),
])
def test_groups(texts, options, expected):
    assert Kept(texts, **options).groups == expected


def test_groups_have_so_many_texts_at_most():
    assert [len(group) for group in Kept([""] * 3000, limits(max_batch_tokens=16384)).groups] == [MOST_TEXTS, MOST_TEXTS, 952]


@pytest.mark.parametrize("message", [
    "texts: expected at most 96 tokens in total; got more, up to texts[1]", "token_ids.shape: expected at most 96 tokens; got [97]",
    "the answer would take 9 bytes; the server allows 8",  # of older servers
    "the response would take 9 bytes; the server allows 8", "the response could take 9 bytes; the server allows 8",
    "the request would take 9 bytes with its response; the server has 8 for all requests (--memory-limit-bytes)"])
def test_halves_replace_what_is_too_large(message):
    requests = Kept(list("abcde"))
    assert requests.take(StreamAnswer(0, error=InvalidArgument(message))) == 0
    requests.next_round()
    assert requests.groups == [[0, 1], [2, 3, 4]]
    assert requests.take(StreamAnswer(1, encoded="answer")) == 3
    assert requests.kept == [([2, 3, 4], "answer")]
    assert requests.take(StreamAnswer(0, error=InvalidArgument(message))) == 0
    requests.next_round()
    assert requests.groups == [[0], [1]]
    with pytest.raises(InvalidArgument, match=r"INVALID_ARGUMENT: texts\[1\]: "):
        requests.take(StreamAnswer(1, error=InvalidArgument(message)))


@pytest.mark.parametrize("error", [InvalidArgument("prompt_name: expected none"), NotFound("no model is named m"),
                                   InvalidArgument("texts[1]: expected UTF-8; got others")])
def test_what_halves_would_meet_too_is_raised(error):
    requests = Kept(list("abc"))
    with pytest.raises(type(error)) as raised:
        requests.take(StreamAnswer(0, error=error))
    assert raised.value.message == error.message


def test_errors_have_the_indices_of_the_list():
    requests = Kept([""] * 2000, limits(max_batch_tokens=16384))
    error = InvalidArgument("text_pairs[3]: expected so", reason="r", retry_after=2.0)
    with pytest.raises(InvalidArgument, match=rf"text_pairs\[{MOST_TEXTS + 3}\]: expected so") as raised:
        requests.take(StreamAnswer(1, error=error))
    assert (raised.value.field, raised.value.reason, raised.value.retry_after) == ("text_pairs", "r", 2.0)


def test_answers_are_joined_in_the_order_of_the_texts():
    model = messages.GetModelResponse(takes_texts=True, limits=limits(max_batch_tokens=3))
    requests = EncodedTexts(model, {"texts": ["abcd", "b", "c"]})
    for index in (2, 0, 1):
        requests.take(StreamAnswer(index, encoded=Encoded(lengths=[index], tokens=[messages.TextTokens(ids=[index])])))
    made = requests.joined()
    assert made.lengths == [0, 1, 2] and [list(one.ids) for one in made.tokens] == [[0], [1], [2]]
    assert made.hidden_states is None
