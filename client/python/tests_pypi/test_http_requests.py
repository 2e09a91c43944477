"""Requests that are refused before any model is asked, whatever they ask for; keys; what the program is started with."""
import http.client
import json

import pytest
from http_front import run_front

OVER_NESTED = b"[" * 100_000


@pytest.mark.parametrize("body, message", [
    (b"", "the body: expected a JSON object; got what cannot be read as JSON"),
    (b"{", "the body: expected a JSON object; got what cannot be read as JSON"),
    (b'{"input": "\xff"}', "the body: expected a JSON object; got what cannot be read as JSON"),
    (b'{"input": "a", "dimensions": NaN}', "the body: expected a JSON object; got what cannot be read as JSON (NaN is no number"),
    (b'{"input": [Infinity]}', "the body: expected a JSON object; got what cannot be read as JSON (Infinity is no number"),
    (b"[1]", "the body: expected a JSON object; got a list of 1"),
    (OVER_NESTED, "the body: expected a JSON object; got one that is nested too deeply"),
    (b'{"input": [1, 1e999]}', "input[1]: expected a token id, which is an integer from 0; got Infinity"),
    (b'{"input": [1, 1.0]}', "input[1]: expected a token id, which is an integer from 0; got 1.0"),
    (b'{"input": [-1]}', "input[0]: expected a token id, which is an integer from 0; got -1"),
    (b'{"input": [1' + b"0" * 60 + b"]}", "input[0]: expected a token id, which is an integer from 0; got a number of many digits"),
    (b'{"input": {"text": "a"}}', "input: expected a text, a list of texts, or token ids; got an object"),
    (b'{"input": "a", "model": 3}', "model: expected a text; got 3"),
    (b'{"input": "a", "encoding_format": "hex"}', 'encoding_format: expected "float" or "base64"; got "hex"'),
])
def test_bodies(front, body, message):
    answer = front.post("/v1/embeddings", body)
    assert answer.status == 400 and answer.json["error"]["type"] == "invalid_request_error"
    assert answer.json["error"]["message"].startswith(message)
    assert answer.json["error"]["param"] == (message.partition(":")[0].partition("[")[0] if message[:3] != "the" else None)


def test_paths_and_methods(front):
    answer = front.get("/v1/nothing")
    assert answer.status == 404 and answer.json["error"]["message"] == "there is no /v1/nothing here"
    assert front.get("/nothing").json == {"error": "there is no /nothing here", "error_type": "Validation"}
    answer = front.get("/v1/embeddings")
    assert answer.status == 405 and answer.json["error"]["message"] == "GET is no method of /v1/embeddings"


@pytest.fixture(scope="module")
def small_front(letters, tmp_path_factory):
    """A front with low limits, other names, and keys."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("# of the tests\n\nfirst-key\nsecond-key\n")
    with run_front(letters.address, "--api-key-file", keys, "--max-body-bytes", 2000, "--max-texts", 3, "--max-text-characters", 50,
                   "--model", "text-embedding-3-small=embedder", "--model", "gone=nobody", "--no-auto-truncate") as running:
        yield running


KEY = {"authorization": "Bearer second-key"}


@pytest.mark.parametrize("header, got", [({}, "none"), ({"authorization": "Bearer wrong"}, "another one"),
                                         ({"authorization": "Basic first-key"}, "another one")])
def test_keys(small_front, header, got):
    answer = small_front.post("/v1/embeddings", {"input": "a"}, **header)
    assert answer.status == 401 and answer.json["error"]["code"] == "invalid_api_key"
    assert answer.json["error"]["message"].endswith(f"got {got}")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert small_front.get("/info", **header).status == 401
    assert small_front.get("/health", **header).status == 200


def test_either_key_does(small_front):
    for key in ("first-key", "second-key"):
        assert small_front.post("/v1/embeddings", {"input": "a"}, authorization=f"Bearer {key}").status == 200


def test_other_names(small_front):
    assert [one["id"] for one in small_front.get("/v1/models", **KEY).json["data"]] == ["text-embedding-3-small"]
    answer = small_front.post("/v1/embeddings", {"input": "a", "model": "text-embedding-3-small"}, **KEY)
    assert answer.json["model"] == "text-embedding-3-small"
    answer = small_front.post("/v1/embeddings", {"input": "a", "model": "embedder"}, **KEY)
    assert answer.status == 404
    assert answer.json["error"]["message"] == 'model: expected one of text-embedding-3-small, gone; got "embedder"'
    assert small_front.post("/v1/embeddings", {"input": "a", "model": "gone"}, **KEY).json["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("body, openai_status, tei_status, message", [
    (["a"] * 4, 400, 413, "expected at most 3 elements; got 4"),
    (["a", "b" * 51], 400, 413, "expected at most 50 characters; got 51"),
    ([1] * 51, 400, 413, "expected at most 50 token ids; got 51"),
    ("a" * 40, 400, 422, "expected at most 24 tokens; got 42"),
    ("a" * 2000, 413, 413, "the body: expected at most 2000 bytes; got 20"),
])
def test_limits(small_front, body, openai_status, tei_status, message):
    answer = small_front.post("/v1/embeddings", {"input": body}, **KEY)
    assert answer.status == openai_status and message in answer.json["error"]["message"]
    answer = small_front.post("/embed", {"inputs": body}, **KEY)
    assert answer.status == tei_status and message in answer.json["error"]


def test_a_body_of_unknown_length_is_bounded_too(small_front):
    connection = http.client.HTTPConnection("127.0.0.1", small_front.port, timeout=60)
    connection.request("POST", "/v1/embeddings", (b"a" * 1000 for _ in range(3)), KEY, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 413 and "got more" in json.loads(answer.read())["error"]["message"]
    connection.close()


@pytest.mark.parametrize("value", ["0", "-1", "nan", "soon"])
def test_timeouts_that_are_none(front, value):
    answer = front.post("/v1/embeddings", {"input": "a"}, x_request_timeout=value)
    assert answer.status == 400
    assert answer.json["error"]["message"] == f"x-request-timeout: expected seconds above 0; got '{value}'"
