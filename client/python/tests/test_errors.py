"""Refusals: code, message, field, reason, time to try again; deadlines and retries."""
import socket
import threading
import time

import grpc
import numpy as np
import pytest
from attendant_client import (AttendantError, Client, DeadlineExceeded, Internal, InvalidArgument, NotFound, ServerBusy,
                              Unavailable, Unimplemented, encode_request, messages)
from fake_server import serve
from programs import run_server

STATUS = grpc.StatusCode


def test_refusal_of_the_server(client):
    with pytest.raises(InvalidArgument) as refused:
        client.encode("bert", input_ids=[[1, 60]])
    error = refused.value
    assert error.code == STATUS.INVALID_ARGUMENT
    assert error.message == "token_ids[1]: expected 0..59; got 60"
    assert (error.field, error.reason, error.retry_after) == ("input_ids", "", None)
    assert str(error) == "INVALID_ARGUMENT: token_ids[1]: expected 0..59; got 60"
    assert isinstance(error, AttendantError) and isinstance(error, ValueError)


def test_shape_that_the_model_does_not_take(client):
    with pytest.raises(InvalidArgument, match=r"hidden_states.shape: expected \[B, S, 24\].*; got \[1, 2, 23\]") as refused:
        client.encode("bert", hidden_states=np.zeros((1, 2, 23), np.float32))
    assert refused.value.field == "hidden_states"


def test_unknown_model(client):
    with pytest.raises(NotFound, match='no model is named "nobody"') as refused:
        client.encode("nobody", input_ids=[[1]])
    assert refused.value.field == "model" and isinstance(refused.value, LookupError)


def test_deadline_of_the_client_and_of_a_call():
    with serve({"ListModels": lambda _, context: time.sleep(0.4) or b""}) as address:
        with Client(address, timeout=0.05) as client:
            with pytest.raises(DeadlineExceeded) as refused:
                client.models()
            assert refused.value.code == STATUS.DEADLINE_EXCEEDED and isinstance(refused.value, TimeoutError)
            assert client.models(timeout=10) == []
            assert client.models(timeout=None) == []


def test_hopeless_deadline_has_a_reason(programs):
    with run_server(programs, {"m": "synthetic:minilm-l6"}) as server, Client(server.address) as client:
        with pytest.raises(DeadlineExceeded) as refused:
            client.encode("m", input_ids=[[1] * 512] * 30, return_hidden_states=False, pooling="mean", timeout=0.3)
        assert refused.value.reason == "deadline_hopeless"


def test_busy_server_says_why_and_when_to_try_again(programs, checkpoint):
    with run_server(programs, {"bert": checkpoint}, "--max-streams", 1) as server, Client(server.address, wait=False) as client:
        opened, done = threading.Event(), threading.Event()

        def items():
            yield encode_request("bert", input_ids=[[1]])
            done.wait(60)

        def hold():
            for _ in client.encode_stream(items()):
                opened.set()

        holder = threading.Thread(target=hold)
        holder.start()
        assert opened.wait(60)
        try:
            with pytest.raises(ServerBusy) as refused:
                list(client.encode_stream([encode_request("bert", input_ids=[[1]])]))
        finally:
            done.set()
            holder.join()
        assert refused.value.reason == "streams" and "(streams)" in str(refused.value)
        assert refused.value.retry_after > 0


def test_no_server():
    with Client("127.0.0.1:1", retry=False) as client, pytest.raises(Unavailable):
        client.models()


def test_a_method_that_the_server_lacks():
    with serve({}) as address, Client(address) as client, pytest.raises(Unimplemented):
        client.model()


def refusing(times, answer):
    """Returns a method that is refused with UNAVAILABLE this many times, and the list of its requests."""
    seen = []

    def method(request, context):
        seen.append(request)
        if len(seen) <= times:
            context.set_trailing_metadata((("attendant-reason", "draining"),))
            context.abort(STATUS.UNAVAILABLE, "the server stops")
        return answer

    return method, seen


ANSWER = messages.EncodeResponse().SerializeToString()
LARGE = np.ones((1, 64, 4096), np.float32)  # 1 MiB, more than gRPC keeps of a request by default


def test_calls_are_tried_again():
    method, seen = refusing(3, ANSWER)
    with serve({"Encode": method}) as address, Client(address) as client:
        client.encode(hidden_states=LARGE)
    assert len(seen) == 4 and len(set(seen)) == 1


def test_what_is_left_after_the_last_try():
    method, seen = refusing(100, ANSWER)
    with serve({"Encode": method}) as address, Client(address) as client, pytest.raises(Unavailable) as refused:
        client.encode(input_ids=[[1]])
    assert len(seen) == 5
    assert refused.value.reason == "draining" and refused.value.message == "the server stops"


def test_retries_may_be_turned_off():
    method, seen = refusing(1, ANSWER)
    with serve({"Encode": method}) as address, Client(address, retry=False) as client, pytest.raises(Unavailable):
        client.encode(input_ids=[[1]])
    assert len(seen) == 1


def test_memories_are_not_registered_again():
    method, seen = refusing(1, ANSWER)
    with serve({"PutMemory": method}) as address, Client(address) as client, pytest.raises(Unavailable):
        client.put_memory("m", memory=LARGE)
    assert len(seen) == 1


def test_prepared_request_is_sent_as_it_was():
    method, seen = refusing(0, ANSWER)
    rows = np.ones((1, 1, 4), np.float32)
    request = encode_request("m", hidden_states=rows)
    prepared = request.prepare()
    rows[:] = 2
    with serve({"Encode": method}) as address, Client(address) as client:
        for _ in range(2):
            client.send(prepared)
        client.send(request)
    sent = [np.frombuffer(messages.EncodeRequest.FromString(one).hidden_states.data, np.float32)[0] for one in seen]
    assert sent == [1, 1, 2]


BAD_ANSWERS = [b"\xff", b"\x0a\x05", b"\x0b", messages.EncodeResponse(
    pooled=messages.Tensor(dtype=messages.FLOAT32, shape=[2], data=b"1234567")).SerializeToString()]


@pytest.mark.parametrize("answer", BAD_ANSWERS)
def test_answers_that_are_none(answer):
    with serve({"Encode": lambda *_: answer}) as address, Client(address) as client, pytest.raises(Internal, match="the response"):
        client.encode(input_ids=[[1]])


def test_streams_of_a_server_that_goes(programs, checkpoint):
    with run_server(programs, {"bert": checkpoint}) as server, Client(server.address) as client:
        stop = threading.Event()

        def items():
            yield encode_request("bert", input_ids=[[1]])
            stop.wait(60)
            yield encode_request("bert", input_ids=[[1]])

        stream = client.encode_stream(items())
        next(stream)
        server.process.terminate()
        with pytest.raises(Unavailable):
            next(stream)
        stop.set()


def test_largest_answer():
    with serve({"Encode": lambda *_: messages.EncodeResponse(pooled=messages.Tensor(
            dtype=messages.UINT8, shape=[5 << 20], data=bytes(5 << 20))).SerializeToString()}) as address:
        with Client(address) as client:
            assert client.encode(input_ids=[[1]]).pooled.shape == (5 << 20,)
        with Client(address, max_message_bytes=1 << 20) as client, pytest.raises(ServerBusy, match="larger than max"):
            client.encode(input_ids=[[1]])


def test_address_that_nobody_listens_on_is_found_again(programs, checkpoint):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Client(f"127.0.0.1:{port}", retry=False) as client:
        with pytest.raises(Unavailable):
            client.models()
        with run_server(programs, {"bert": checkpoint}, port=port):
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                try:
                    assert client.models() == ["bert"]
                    return
                except Unavailable:
                    time.sleep(0.1)
    pytest.fail("the client did not connect again within 30 s")
