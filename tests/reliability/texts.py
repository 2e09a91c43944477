"""Texts and bodies that are to cost a server much: what each costs for a KiB, and whether one ends it; and bodies that stop half-way."""
import contextlib
import http.client
import json
import time

import calls
import grpc
import hostile
import tokenizer_folders
from report import Measured
from server_process import NotMeasured, cores, pinned
from small_server import MIB, observed, small_server

from attendant.v1 import encoder_service_pb2 as pb

CHARACTERS = 190_000  # nearly as many as a text may have over HTTP
MOST_BYTES = 1_000_000  # of a text, over gRPC as well; a body of this size is read to its end
ROUNDS = 3
SECONDS = 15
REFUSALS = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED}
# A text is one of these, repeated.
PATTERNS = {
    "a letter and marks": "\u0315\u0300", "marks in no order": "\u0301\u0323\u0315\u05ae", "a word": "x", "a run": "a", "digits": "9",
    "spaces": " ", "lines": "\r\n", "apostrophes": "'", "ideographs": "漢", "syllables": "\u1100\u1161\u11a8", "joined emoji": "👩\u200d",
    "what normalizes to more": "ﷺ", "controls": "\x01\u200b", "added tokens": "[CLS]", "almost added tokens": "[MASK", "one in two": "a ",
}


def texts() -> dict:
    made = {}
    for name, pattern in PATTERNS.items():
        times = min(CHARACTERS // len(pattern), MOST_BYTES // len(pattern.encode()))
        made[name] = ("a" if "marks" in name else "") + pattern * times
    return made


def bodies() -> dict:
    """Bodies of /embed that are not one long text."""
    def body(inputs) -> bytes:
        return json.dumps({"inputs": inputs}, ensure_ascii=False).encode()

    return {
        "lists in lists": b'{"inputs":' + b"[" * MOST_BYTES, "objects in objects": b'{"a":' * (MOST_BYTES // 5),
        "empty texts": body([""] * 2048), "too many empty texts": body([""] * (MOST_BYTES // 4)),
        "escapes": b'{"inputs":"a' + b"\\u0301" * (MOST_BYTES // 6) + b'"}',
        "half a surrogate pair at the end": b'{"inputs":"' + b"a" * CHARACTERS + b'\\ud800"}',
        "too long a text": body("a" * MOST_BYTES), "ids": body([1] * (MOST_BYTES // 3)), "a long number": b'{"inputs":' + b"9" * MOST_BYTES,
        "many members": b'{"a":0' + b',"b":[]' * (MOST_BYTES // 7) + b"}", "not UTF-8": b'{"inputs":"' + b"\xff" * MOST_BYTES + b'"}',
        "lists of a text": body([["a"]] * 2048),
    }


class Attacked:
    """A server with a model of each tokenizer, which is started again if an attack ends it."""

    def __init__(self, setup):
        self._setup, self._server = setup, None
        self.crashes, self.sent, self.refused, self.costs = 0, 0, 0, {}

    def __enter__(self):
        self._start()
        return self

    def __exit__(self, *_):
        self._server.__exit__()

    def attack(self, name: str, model: str, size: int, send) -> None:
        """Notes the least milliseconds for a KiB of some attempts. `send` returns whether the request was computed, not refused, and
        raises an error if it got neither answer."""
        least = float("inf")
        for _ in range(ROUNDS):
            begin = time.monotonic()
            self.sent += 1
            try:
                self.refused += not send(self._server, model)
            except (OSError, ValueError, http.client.HTTPException, grpc.RpcError) as error:
                self._crashed(f"{name}, {model}: {type(error).__name__}: {error}"[:300])
            least = min(least, 1000 * (time.monotonic() - begin) / (size / 1024))
        self.costs[f"{name}, {model}"] = least

    def _start(self) -> None:
        core, _ = cores()
        folder = self._folder()
        models = [f"--model={kind}={folder / kind}" for kind in tokenizer_folders.KINDS]
        self._server = self._setup.serve(*models, launcher=pinned(core))

    def _folder(self):
        folder = self._setup.build / "reliability" / "tokenizers"
        if not folder.exists():
            for kind in tokenizer_folders.KINDS:
                tokenizer_folders.write(folder / kind, kind)
        return folder

    def _crashed(self, what: str) -> None:
        self.crashes += 1
        self._setup.note(f"text.hostile_crashes: {what}")
        try:
            self._server.resident_bytes()
        except (NotMeasured, OSError):
            self._server.__exit__()
            self._start()


def over_http(body: bytes):
    def send(server, model: str) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=120)
        try:
            connection.request("POST", f"/models/{model}/embed", body)
            answer = connection.getresponse()
            answer.read()
            if answer.status >= 500:
                raise ValueError(f"status {answer.status}")
            return answer.status == 200
        finally:
            connection.close()
    return send


def over_grpc(text: str):
    def send(server, model: str) -> bool:
        request = pb.EncodeRequest(model=model, texts=[text], pooling=pb.MODEL_POOLING, truncation=pb.TRUNCATE_RIGHT)
        with calls.open_channel(server.address) as channel:
            try:
                calls.method(channel, calls.ENCODE)(request.SerializeToString(), timeout=120)
            except grpc.RpcError as error:
                if error.code() not in REFUSALS:
                    raise
                return False
        return True
    return send


def _costs(setup, figures: dict) -> None:
    with Attacked(setup) as attacked:
        for model in tokenizer_folders.KINDS:
            for name, text in texts().items():
                size = len(text.encode())
                attacked.attack(f"{name} over HTTP", model, size, over_http(json.dumps({"inputs": text}, ensure_ascii=False).encode()))
                attacked.attack(f"{name} over gRPC", model, size, over_grpc(text))
        for name, body in bodies().items():
            attacked.attack(name, next(iter(tokenizer_folders.KINDS)), len(body), over_http(body))
    worst = sorted(attacked.costs, key=attacked.costs.get, reverse=True)
    setup.note(f"text.hostile: {attacked.refused} of {attacked.sent} were refused; the rest was computed")
    setup.note("text.hostile_ms_per_kib: " + "; ".join(f"{name}: {attacked.costs[name]:.3f}" for name in worst[:6]))
    figures["text.hostile_ms_per_kib"] = Measured(attacked.costs[worst[0]], attacked.sent)
    figures["text.hostile_crashes"] = Measured(attacked.crashes, attacked.sent)


def _half_sent(setup, figures: dict) -> None:
    """Bodies of 1 MiB that stop half-way, from one address, and a good caller at another."""
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: test\r\nContent-Length: {MIB}\r\n\r\n".encode() + b'{"input":["'
    with small_server(setup) as server, observed(setup, "half_sent_texts", server) as cost:
        until, callers = time.monotonic() + SECONDS, {}
        while time.monotonic() < until:
            opened = hostile.refill(list(callers), 128, server.http_port, head)
            callers = {one: callers.get(one, 0) for one in opened}  # what each has sent
            for one, sent in callers.items():
                if sent < MIB // 2:
                    with contextlib.suppress(OSError):
                        callers[one] = sent + one.send(b"a" * (MIB // 64))
            time.sleep(0.02)
    figures["half_sent_texts.rss_mib"] = Measured(cost.rss_mib, cost.calls)
    figures["half_sent_texts.good_caller_s"] = Measured(cost.worst_s, cost.calls)


def measure(setup) -> dict:
    figures = {}
    for prefix, attack in (("text.", _costs), ("half_sent_texts.", _half_sent)):
        if any(figure.startswith(prefix) for figure in setup.wanted):
            attack(setup, figures)
    return figures
