"""Streams of Encode, and sequences in parts."""
from concurrent import futures

import numpy as np
import pytest
from attendant_client import Client, InvalidArgument, NotFound, Part, encode_request
from programs import run_server


def test_answers_belong_to_their_items(client):
    sequences = [[1 + index % 50] * (1 + index % 9) for index in range(100)]
    found = {}
    for answer in client.encode_stream(encode_request("bert", input_ids=[ids], pooling="model") for ids in sequences):
        found[answer.index] = answer.result()
    assert sorted(found) == list(range(100))
    for index in (0, 17, 99):
        alone = client.encode("bert", input_ids=[sequences[index]], pooling="model")
        np.testing.assert_array_equal(found[index].hidden_states[0], alone.hidden_states[0])
        np.testing.assert_array_equal(found[index].pooled, alone.pooled)


def test_a_refused_item_does_not_end_the_stream(client):
    items = [encode_request("bert", input_ids=[[1]]), encode_request("bert", input_ids=[[60]]),
             encode_request("nobody", input_ids=[[1]]), encode_request("bert", input_ids=np.array([[1]]))]
    found = {answer.index: answer for answer in client.encode_stream(items)}
    assert found[0].encoded.hidden_states[0].shape == (1, 24)
    assert found[3].encoded.hidden_states.shape == (1, 1, 24)
    with pytest.raises(InvalidArgument, match=r"token_ids\[0\]: expected 0..59; got 60") as refused:
        found[1].result()
    assert refused.value.field == "input_ids"
    assert isinstance(found[2].error, NotFound)


def test_no_items(client):
    assert list(client.encode_stream([])) == []


def test_prepared_items_may_be_sent_again(client):
    request = encode_request("bert", input_ids=[[3, 4]]).prepare()
    answers = [answer.result().hidden_states[0] for answer in client.encode_stream([request] * 3)]
    np.testing.assert_array_equal(answers[0], answers[2])


def test_what_the_items_raise_reaches_the_reader(client):
    def items():
        yield encode_request("bert", input_ids=[[1]])
        raise KeyError("no more")

    stream = client.encode_stream(items())
    assert next(stream).index == 0
    with pytest.raises(KeyError, match="no more"):
        next(stream)


def test_a_stream_may_be_left_early(client):
    stream = client.encode_stream(encode_request("bert", input_ids=[[1]]) for _ in range(1000))
    next(stream)
    stream.close()
    assert client.encode("bert", input_ids=[[1]]).execution.tokens == 1


def test_a_sequence_in_parts(client, random):
    rows = random.standard_normal((9, 8)).astype(np.float32)
    whole = client.encode("fast", hidden_states=[rows]).hidden_states[0]
    parts = [Part(encode_request("fast", hidden_states=[rows[begin:begin + 3]]), sequence=5, first_token=begin, ends=begin == 6)
             for begin in (0, 3, 6)]
    found = {answer.index: answer.result().hidden_states[0] for answer in client.encode_stream(parts)}
    np.testing.assert_array_equal(np.concatenate([found[0], found[1], found[2]]), whole)


def test_a_part_in_the_wrong_place_is_refused(client, random):
    rows = random.standard_normal((3, 8)).astype(np.float32)
    answer, = client.encode_stream([Part(encode_request("fast", hidden_states=[rows]), sequence=1, first_token=3)])
    assert isinstance(answer.error, InvalidArgument) and "first_token" in answer.error.message


def test_streams_beyond_the_queue_are_not_refused(programs, checkpoint):
    flags = ("--max-queue-seconds", "1ms", "--max-queue-requests", 4, "--max-inflight", 6)
    with run_server(programs, {"bert": checkpoint}, *flags) as server, Client(server.address, wait=False) as client:
        def send(_):
            return [answer.result().pooled for answer in client.encode_stream(
                encode_request("bert", input_ids=[[1] * 48] * 8, pooling="model") for _ in range(100))]

        with futures.ThreadPoolExecutor(4) as callers:
            assert [len(found) for found in callers.map(send, range(4))] == [100] * 4
