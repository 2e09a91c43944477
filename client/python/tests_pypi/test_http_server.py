"""What the server does to callers of the front: busy, slow, gone, restarted; and what callers do: leave."""
import socket
import threading

import grpc
import openai
import pytest
from attendant_client import messages
from fake_server import serve
from http_front import run_front
from text_models import letters_tokenizer
from tokenizers import Tokenizer

STATUS = grpc.StatusCode
BODY = {"input": [1, 2, 3]}
MODEL = messages.GetModelResponse(
    name="m", pooled_width=2, embeddings=messages.EmbeddingDescription(vocabulary=10, longest_sequence=8, max_sequence_length=8),
    limits=messages.Limits(max_request_tokens=100)).SerializeToString()
ANSWER = messages.EncodeResponse(
    pooled=messages.Tensor(dtype=messages.FLOAT32, shape=[1, 2], data=b"\0\0\x80\x3f" * 2)).SerializeToString()


def methods(encode):
    tokenizer = messages.GetTokenizerResponse(tokenizer_json=Tokenizer.from_str(letters_tokenizer()).to_str().encode(), max_sequence_length=8)
    return {"ListModels": lambda *_: messages.ListModelsResponse(names=["m"]).SerializeToString(), "GetModel": lambda *_: MODEL,
            "GetTokenizer": lambda *_: tokenizer.SerializeToString(), "Encode": encode}


def refuse(code, message, *trailers):
    def encode(_, context):
        context.set_trailing_metadata(trailers)
        context.abort(code, message)
    return encode


@pytest.mark.parametrize("code, trailers, status, tei_status, kind", [
    (STATUS.RESOURCE_EXHAUSTED, [("attendant-reason", "memory"), ("grpc-retry-pushback-ms", "1234")], 429, 429, "Overloaded"),
    (STATUS.RESOURCE_EXHAUSTED, [], 429, 429, "Overloaded"),
    (STATUS.DEADLINE_EXCEEDED, [("attendant-reason", "deadline_hopeless")], 504, 504, "Backend"),
    (STATUS.UNAUTHENTICATED, [], 502, 424, "Backend"),
    (STATUS.INTERNAL, [], 502, 424, "Backend"),
])
def test_errors_of_the_server(code, trailers, status, tei_status, kind):
    with serve(methods(refuse(code, "no more", *trailers))) as address, run_front(address) as front:
        answer = front.post("/v1/embeddings", BODY)
        assert answer.status == status and "no more" in answer.json["error"]["message"]
        if status == 429:
            assert (answer.headers["retry-after"], answer.headers["retry-after-ms"]) == (("2", "1234") if trailers else ("1", "1000"))
        answer = front.post("/embed", {"inputs": [1, 2]})
        assert (answer.status, answer.json["error_type"]) == (tei_status, kind) and "no more" in answer.json["error"]


def test_openai_tries_again_when_the_server_says_so():
    seen = []

    def encode(request, context):
        seen.append(request)
        return ANSWER if len(seen) > 1 else refuse(STATUS.RESOURCE_EXHAUSTED, "full", ("attendant-reason", "slots"),
                                                   ("grpc-retry-pushback-ms", "10"))(request, context)

    with serve(methods(encode)) as address, run_front(address) as front:
        caller = openai.OpenAI(base_url=f"{front.url}/v1", api_key="unused", max_retries=1)
        assert caller.embeddings.create(model="m", input=[1, 2]).data[0].embedding == [1, 1]
    assert len(seen) == 2


def test_numbers_that_are_none():
    answer = messages.EncodeResponse(pooled=messages.Tensor(
        dtype=messages.FLOAT32, shape=[1, 2], data=b"\0\0\xc0\x7f" * 2)).SerializeToString()
    with serve(methods(lambda *_: answer)) as address, run_front(address) as front:
        refused = front.post("/v1/embeddings", BODY)
        assert refused.status == 502 and "not finite" in refused.json["error"]["message"]


def test_no_server_and_one_that_comes_later():
    with run_front("127.0.0.1:1", "--timeout", 2) as front:
        assert front.get("/health").status == 503
        answer = front.post("/v1/embeddings", BODY)
        assert answer.status in (503, 504)


def test_deadlines_are_passed_on():
    seen = []

    def encode(_, context):
        seen.append(context.time_remaining())
        return ANSWER

    with serve(methods(encode)) as address, run_front(address, "--timeout", 30) as front:
        for headers in ({}, {"x_request_timeout": "5"}, {"x_stainless_read_timeout": "600"}, {"x_stainless_read_timeout": "7.5"}):
            assert front.post("/v1/embeddings", BODY, **headers).status == 200
    assert [min(most for most in (5, 7.5, 30) if left < most + 1) for left in seen] == [30, 5, 30, 7.5]


def test_a_time_out_that_passes():
    release = threading.Event()
    with serve(methods(lambda *_: release.wait(60) and ANSWER)) as address, run_front(address) as front:
        answer = front.post("/v1/embeddings", BODY, x_request_timeout="0.3")
        release.set()
    assert answer.status == 504 and answer.json["error"]["code"] == "timeout"


class Held:
    """An Encode that waits until it is released or cancelled."""

    def __init__(self):
        self.entered, self.release, self.cancelled = threading.Semaphore(0), threading.Event(), threading.Event()
        self.peers = []

    def __call__(self, _, context):
        context.add_callback(lambda: self.cancelled.set() or self.release.set() if not self.release.is_set() else None)
        self.peers.append(context.peer())
        self.entered.release()
        self.release.wait(60)
        return ANSWER


def test_a_caller_that_leaves_cancels_its_call():
    held = Held()
    with serve(methods(held)) as address, run_front(address) as front:
        caller = front.send("/v1/embeddings", BODY)
        assert held.entered.acquire(timeout=60)
        caller.close()
        assert held.cancelled.wait(60)


def test_requests_share_a_connection_and_are_bounded():
    held = Held()
    with serve(methods(held)) as address, run_front(address, "--max-requests", 3) as front:
        callers = [front.send("/v1/embeddings", BODY) for _ in range(3)]
        for _ in callers:
            assert held.entered.acquire(timeout=60)
        refused = front.post("/embed", {"inputs": "a"})
        assert refused.status == 429 and refused.json["error_type"] == "Overloaded" and refused.headers["retry-after"] == "1"
        assert front.get("/health").status == 200
        held.release.set()
        for caller in callers:
            assert caller.recv(15) == b"HTTP/1.1 200 OK"
            caller.close()
        assert front.post("/v1/embeddings", BODY).status == 200
    assert len(set(held.peers)) == 1


def test_a_stop_waits_for_what_is_under_way():
    held = Held()
    with serve(methods(held)) as address, run_front(address) as front:
        caller = front.send("/v1/embeddings", BODY)
        assert held.entered.acquire(timeout=60)
        front.stop()
        held.release.set()
        assert caller.recv(15) == b"HTTP/1.1 200 OK"
        caller.close()
        assert front.process.wait(60) in (0, -15)


def test_slow_bodies_end():
    with serve(methods(lambda *_: ANSWER)) as address, run_front(address, "--timeout", 0.3) as front:
        caller = socket.create_connection(("127.0.0.1", front.port), timeout=60)
        caller.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\n{")
        assert caller.recv(12) == b"HTTP/1.1 408"
        caller.close()
