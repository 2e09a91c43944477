"""Calls that wait for a full server: as long as it says, and not a moment of it in these tests."""
import asyncio
import threading

import grpc
import pytest
from attendant_client import AsyncClient, Client, Part, ServerBusy, encode_request, messages
from attendant_client.channel import Connection
from attendant_client.patience import Patience
from fake_server import serve

ANSWER = messages.EncodeResponse(execution=messages.Execution(tokens=7))
BUSY = grpc.StatusCode.RESOURCE_EXHAUSTED
REASON = ("attendant-reason", "slots")


def refusing(times, milliseconds="1500"):
    """Returns Encode that is refused this many times, and the list of its requests."""
    seen = []

    def encode(request, context):
        seen.append(request)
        if len(seen) <= times:
            context.set_trailing_metadata((REASON, *((("grpc-retry-pushback-ms", milliseconds),) if milliseconds else ())))
            context.abort(BUSY, "full")
        return ANSWER.SerializeToString()

    return {"Encode": encode}, seen


class Stream:
    """EncodeStream that refuses whole streams, the first ones, and of each stream the items that it is told to."""

    def __init__(self, streams=0, items=()):
        self._streams, self._items = streams, list(items)
        self.seen, self._lock = [], threading.Lock()

    def __call__(self, requests, context):
        with self._lock:
            self.seen.append([])
            number = len(self.seen) - 1
        if number < self._streams:
            context.set_trailing_metadata((("attendant-reason", "streams"), ("grpc-retry-pushback-ms", "70")))
            context.abort(BUSY, "full")
        for message in requests:
            request = messages.EncodeStreamRequest.FromString(message)
            self.seen[number].append(request.id)
            answer = messages.EncodeStreamResponse(id=request.id)
            wait = self._items[number].get(request.id) if number < len(self._items) else None
            if wait is None:
                answer.response.CopyFrom(ANSWER)
            else:
                answer.error.CopyFrom(messages.Error(code=BUSY.value[0], message="full", reason="memory", retry_pushback_ms=wait))
            yield answer.SerializeToString()


def requests(count=4):
    return [encode_request("m", input_ids=[[index]]) for index in range(count)]


def run(kind, methods, call, **options):
    """Calls `call(client, collect)` with a client of either kind, whose pauses are returned with what it returns."""
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    async def main(address):
        async with AsyncClient(address, **options) as client:
            client._sleep = sleep
            found = call(client)
            return [one async for one in found] if hasattr(found, "__aiter__") else await found

    with serve(methods) as address:
        if kind == "async":
            return asyncio.run(main(address)), pauses
        with Client(address, **options) as client:
            client._sleep = pauses.append
            found = call(client)
            return list(found) if hasattr(found, "__next__") else found, pauses


both = pytest.mark.parametrize("kind", ["sync", "async"])


@both
def test_a_call_waits_as_long_as_it_is_told(kind):
    methods, seen = refusing(2)
    answer, pauses = run(kind, methods, lambda client: client.encode("m", input_ids=[[1]]))
    assert answer.execution.tokens == 7
    assert pauses == [1.5, 1.5] and len(seen) == 3 and len(set(seen)) == 1


@both
@pytest.mark.parametrize("milliseconds, options, timeout", [("1500", {}, 1), ("1500", {"wait": False}, 60), ("", {}, 60)])
def test_what_is_not_waited_for(kind, milliseconds, options, timeout):
    methods, seen = refusing(1, milliseconds)
    with pytest.raises(ServerBusy) as refused:
        run(kind, methods, lambda client: client.encode("m", input_ids=[[1]], timeout=timeout), **options)
    assert refused.value.reason == "slots" and len(seen) == 1


@both
def test_items_that_are_refused_are_sent_again(kind):
    stream = Stream(items=[{1: 40, 3: 250}, {3: 10}])
    answers, pauses = run(kind, {"EncodeStream": stream}, lambda client: client.encode_stream(requests()))
    assert [answer.index for answer in answers] == [0, 2, 1, 3]
    assert all(answer.result().execution.tokens == 7 for answer in answers)
    assert stream.seen == [[0, 1, 2, 3], [1, 3], [3]] and pauses == [0.25, 0.01]


@both
def test_streams_that_are_refused_are_opened_again(kind):
    stream = Stream(streams=2)
    answers, pauses = run(kind, {"EncodeStream": stream}, lambda client: client.encode_stream(iter(requests(100))))
    assert sorted(answer.index for answer in answers) == list(range(100))
    assert sorted(stream.seen[2]) == list(range(100)) and pauses == [0.07, 0.07]


@both
def test_items_without_patience_are_answered_with_the_error(kind):
    stream = Stream(items=[{1: 40}])
    answers, pauses = run(kind, {"EncodeStream": stream}, lambda client: client.encode_stream(requests()), wait=False)
    assert [answer.error and (answer.error.reason, answer.error.retry_after) for answer in answers] == [
        None, ("memory", 0.04), None, None]
    assert pauses == []


@both
def test_parts_are_not_sent_again(kind):
    stream = Stream(items=[{0: 40}])
    parts = [Part(request, sequence=1) for request in requests(2)]
    answers, pauses = run(kind, {"EncodeStream": stream}, lambda client: client.encode_stream(parts))
    assert isinstance(answers[0].error, ServerBusy) and answers[1].error is None and pauses == []
    with pytest.raises(ServerBusy):
        run(kind, {"EncodeStream": Stream(streams=1)}, lambda client: client.encode_stream(parts))


@both
def test_what_the_items_raise_comes_after_those_that_waited(kind):
    stream, found = Stream(items=[{0: 40}]), []

    def items():
        yield from requests(2)
        raise KeyError("no more")

    def call(client):
        answers = client.encode_stream(items())

        async def collect():
            async for answer in answers:
                found.append(answer.index)

        if kind == "async":
            return collect()
        for answer in answers:
            found.append(answer.index)
        return None

    with pytest.raises(KeyError, match="no more"):
        run(kind, {"EncodeStream": stream}, call)
    assert found == [1, 0]


def test_patience_ends_before_the_time_does():
    now = [0.0]
    patience = Patience(True, 10, lambda: now[0])
    assert patience.left() == 10
    assert patience.pause(ServerBusy("full", retry_after=9.5)) == 9.5
    now[0] = 9.5
    assert patience.left() == 0.5
    with pytest.raises(ServerBusy):
        patience.pause(ServerBusy("full", retry_after=0.5))
    assert Patience(True, None).left() is None


def test_calls_that_compute_have_no_time_out_unless_one_is_given():
    encode, models = messages.method_path("Encode"), messages.method_path("ListModels")
    default, given = Connection("host:1"), Connection("host:1", timeout=5.0)
    assert (default.timeout_of(encode, -1.0), default.timeout_of(models, -1.0)) == (None, 60.0)
    assert (given.timeout_of(encode, -1.0), given.timeout_of(models, -1.0), given.timeout_of(models, None)) == (5.0, 5.0, None)
