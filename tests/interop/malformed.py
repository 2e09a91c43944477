"""Malformed requests of the Open Inference Protocol, over gRPC and over REST: each has to be refused, quickly, without a crash,
and before memory is taken for what it only claims to bring.

Requests are made of bytes here, field by field, as no library would make them. None has more than 1 MiB.
"""
import contextlib
import dataclasses
import gzip
import json
import socket
import struct

import grpc
from fields import claim, field, tensor

MIB = 1 << 20
HUGE = 2**62
SECONDS = 20
# How gRPC refuses a message that is none, and how the server refuses what it says.
REFUSALS = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INTERNAL,
            grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNIMPLEMENTED}


@dataclasses.dataclass
class Result:
    """Of all requests of one kind."""
    sent: int
    wrong: list  # names of those that were not refused, with what came instead
    growth_mib: float  # of the server's peak memory over what it had before


# --- gRPC: messages of inference.ModelInferRequest

def grpc_requests() -> dict:
    model, raw = field(1, b"l6"), field(7, struct.pack("<2q", 5, 5))
    shapes = {"negative": (-1, 2), "most negative": (-(2**63), 1), "product above 64 bits": (HUGE, HUGE),
              "product of zero bits": (2**32, 2**32), "2^40 sequences": (2**40, 1), "2^40 tokens": (1, 2**40),
              "2^30 tokens": (2**15, 2**15), "no dimension": (), "100,000 dimensions": (1,) * 100_000, "zero": (0, HUGE)}
    made = {f"shape: {name}": model + tensor(shape=shape) + raw for name, shape in shapes.items()}
    made |= {f"shape of rows: {name}": field(1, b"l6.hidden") + tensor(b"hidden_states", b"FP32", (*shape, 384)) + raw
             for name, shape in shapes.items()}
    contents = lambda inner: model + tensor(more=field(5, inner))
    made |= {
        "field that claims 1 GiB": model + claim(7, 1 << 30) + b"x",
        "field that claims 2^63 bytes": model + claim(5, 2**63) + b"x",
        "contents that claim 1 GiB": contents(claim(3, 1 << 30)),
        "contents cut within a number": contents(field(3, b"\xff\xff\xff")),
        "contents in the wrong list": contents(field(6, struct.pack("<2f", 1.5, 2))),
        "contents of 8-byte floats": contents(field(7, struct.pack("<2d", 1, 2.5))),
        "contents of texts": contents(field(8, b"text")),
        "contents for 2^40 elements": model + tensor(shape=(2**40, 1), more=field(5, field(3, b"\5"))),
        "too many contents": contents(field(3, b"\5" * 100_000)),
        "wire type that there is not": model + b"\x3f\xff\xff",
        "end of a group without its begin": model + b"\x3c",
        "groups in groups": model + b"\xa3\x06" * 5000,
        "number of 11 bytes": b"\x08" + b"\xff" * 11,
        "random bytes": bytes((i * 167 + 13) & 255 for i in range(5000)),
        "zeros": bytes(5000),
        "name that is no UTF-8": field(1, b"\xff\xfe\x00") + tensor() + raw,
        "name of 1 MiB": field(1, b"n" * (MIB - 100)) + tensor() + raw,
        "tensor's name of 1 MiB": model + tensor(name=b"n" * (MIB - 100)) + raw,
        "datatype of 1 MiB": model + tensor(datatype=b"D" * (MIB - 100)) + raw,
        "datatype BYTES that claims 4 GiB": model + tensor(datatype=b"BYTES") + field(7, b"\xff\xff\xff\xff"),
        "20,000 inputs": model + tensor() * 20_000 + raw,
        "20,000 outputs": model + tensor() + field(6, field(1, b"hidden_states.1")) * 20_000 + raw,
        "outputs of a layer that there is not": model + tensor() + field(6, field(1, b"hidden_states.99999999999999999999")) + raw,
        "100,000 raw entries": model + tensor() + field(7, b"") * 100_000,
        "raw bytes cut": model + tensor() + field(7, b"\5" * 15),
        "raw bytes, one too many": model + tensor() + field(7, b"\5" * 17),
        "raw bytes and no input": model + raw,
        "ids outside the vocabulary": model + tensor() + field(7, struct.pack("<2q", -1, HUGE)),
        "only a name": model,
        "nothing": b"",
        "version of 100 digits": model + field(2, b"9" * 100) + tensor() + raw,
        "parameter of another type": model + field(4, field(1, b"timeout") + field(2, field(3, b"soon"))) + tensor() + raw,
        "layer beyond all": field(1, b"l6.hidden") + field(4, field(1, b"layer") + field(2, field(2, 2**63 - 1))) + tensor(
            b"hidden_states", b"FP32", (1, 1, 384)) + field(6, field(1, b"context_layer")) + field(7, bytes(1536)),
    }
    return made


def send_grpc(address: str) -> list:
    """Sends them all; returns what was wrong."""
    wrong = []
    with grpc.insecure_channel(address) as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        for name, message in grpc_requests().items():
            try:
                infer(message, timeout=SECONDS)
                wrong.append(f"{name}: accepted")
            except grpc.RpcError as error:
                if error.code() not in REFUSALS:
                    wrong.append(f"{name}: {error.code().name}: {error.details()}"[:200])
    return wrong


# --- REST: requests of /v2/models/NAME/infer

def post(body: bytes, *headers: str, path="/v2/models/l6/infer", length=None, method="POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: test", "Connection: close", *headers]
    if not any(line.lower().startswith("transfer-encoding") for line in headers):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def document(**changes) -> bytes:
    """A request in JSON; the changes are of its only input."""
    made = {"name": "input_ids", "datatype": "INT64", "shape": [1, 2], "data": [5, 5]}
    made.update(changes)
    return json.dumps({"inputs": [{name: value for name, value in made.items() if value is not None}]}).encode()


def binary(size, raw: bytes = bytes(16), shape=(1, 2)) -> tuple:
    """A body of JSON and bytes after it, with the header that tells their border."""
    head = document(data=None, shape=shape, parameters={"binary_data_size": size})
    return head + raw, f"Inference-Header-Content-Length: {len(head)}"


def rest_bodies() -> dict:
    shapes = {"negative": [-1, 2], "product above 64 bits": [HUGE, HUGE], "product of zero bits": [2**32, 2**32],
              "2^40 sequences": [2**40, 1], "above 64 bits": [2**70, 1], "fraction": [1.5, 2], "text": "1,2", "null": [None, 2],
              "none": [], "100,000 dimensions": [1] * 100_000}
    made = {f"shape: {name}": document(shape=shape) for name, shape in shapes.items()}
    made |= {
        "no JSON": b"hello", "nothing": b"", "cut": document()[:-5], "more after it": document() + b"{}", "null": b"null",
        "a list": b"[1]", "a number": b"1e999", "no UTF-8": b'{"inputs": "\xff\xfe"}', "NUL": b"\0" * 1000,
        "100,000 lists in lists": b"[" * 100_000, "data in 100,000 lists": b'{"inputs":[{"name":"input_ids","datatype":"INT64",'
        b'"shape":[1,2],"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}", "100,000 objects in objects": b'{"a":' * 100_000,
        "inputs that are no list": b'{"inputs": {"name": 1}}', "input that is no object": b'{"inputs": [7]}', "no inputs": b"{}",
        "20,000 inputs": b'{"inputs":[' + b",".join([b'{"name":"a"}'] * 20_000) + b"]}",
        "data that is too long": document(data=[5] * 100_000), "data that is too short": document(data=[5]),
        "ragged data": document(shape=[2, 2], data=[[5], [5, 5, 5]]), "data of texts": document(data=["5", "5"]),
        "data of fractions": document(data=[5.5, 5.0]), "data above 64 bits": document(data=[2**70, 5]),
        "ids outside the vocabulary": document(data=[-1, 5]), "data that is a number": document(data=5), "no data": document(data=None),
        "name that is a number": document(name=7), "name of 1 MiB": document(name="n" * (MIB - 1000)),
        "datatype BYTES": document(datatype="BYTES", data=["a", "b"]), "unknown datatype": document(datatype="INT65"),
        "parameters that are a list": document(parameters=[1]), "binary size without bytes": document(parameters={"binary_data_size": 8}),
        "outputs that are a text": b'{"outputs": "all", ' + document()[1:], "output without a name": b'{"outputs": [{}], ' + document()[1:],
        "shared memory": document(data=None, parameters={"shared_memory_region": "../../etc/passwd"}),
    }
    return {name: post(body) for name, body in made.items()}


def rest_complete() -> dict:
    """Requests that bring what they claim as HTTP, so that each gets an answer."""
    made = rest_bodies()
    for name, size in (("negative", -1), ("2^62", HUGE), ("above 64 bits", 2**70), ("too small", 8), ("too large", 24),
                       ("a fraction", 16.5), ("a text", "16")):
        body, header = binary(size)
        made[f"binary size: {name}"] = post(body, header)
    body, header = binary(HUGE, shape=(HUGE // 8, 1))
    made["binary size and shape that agree on 2^62 bytes"] = post(body, header)
    for border in ("-1", "99999999999999999999", str(len(body) + 1), "ten", "", "0"):
        made[f'border of the JSON: "{border}"'] = post(body, f"Inference-Header-Content-Length: {border}")
    good = document()
    made |= {
        "gzip of 200 MiB": post(gzip.compress(bytes(200 * MIB)), "Content-Encoding: gzip"),
        "unknown model": post(good, path="/v2/models/nobody/infer"),
        "NUL in the path": post(good, path="/v2/models/%00/infer"), "path upwards": post(good, path="/v2/models/../../etc/passwd"),
        "version above 64 bits": post(good, path="/v2/models/l6/versions/99999999999999999999/infer"),
        "version that is a word": post(good, path="/v2/models/l6/versions/one/infer"),
        "DELETE": post(good, method="DELETE"), "GET of infer": post(b"", method="GET"), "POST of metadata": post(good, path="/v2"),
    }
    return made


def rest_broken() -> dict:
    """Requests that are no HTTP, or claim more than follows: the server may end the connection without an answer."""
    good = document()
    return {
        "length of 2^62 and a short body": post(good, length=HUGE), "length above 64 bits": post(good, length=2**70),
        "negative length": post(good, length=-5), "length that is a word": post(good, length="ten"),
        "length of 1 GiB and a short body": post(good, length=1 << 30), "length of 20 MiB and a short body": post(good, length=20 * MIB),
        "two lengths": post(good, "Content-Length: 3"),
        "chunk of 2^64 - 1": post(b"ffffffffffffffff\r\nabc", "Transfer-Encoding: chunked"),
        "chunk of 1 GiB": post(b"40000000\r\nabc", "Transfer-Encoding: chunked"),
        "chunk that is no number": post(b"xyz\r\nabc", "Transfer-Encoding: chunked"),
        "chunks without an end": post(b"5\r\nhello\r\n", "Transfer-Encoding: chunked"),
        "waits for 100-continue with 1 TiB": post(b"", "Expect: 100-continue", length=1 << 40),
        "path of 64 KiB": post(good, path="/v2/models/" + "m" * 65_536 + "/infer"),
        "header of 1 MiB": post(good, "X-Long: " + "h" * (MIB - 1000)),
        "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" * 100,
    }


def status_of(port: int, request: bytes, whole: bool) -> int:
    """The status that a request gets; 0 if the server ends the connection without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        answer = b""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has said why, and reads no more
            connection.sendall(request)
        if not whole:  # nothing follows, whatever the request has claimed
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while b"\r\n" not in answer and (part := connection.recv(65_536)):
                answer += part
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def send_rest(port: int) -> list:
    """Sends them all; returns what was wrong."""
    wrong = []
    for requests, whole in ((rest_complete(), True), (rest_broken(), False)):
        for name, request in requests.items():
            try:
                status = status_of(port, request, whole)
            except TimeoutError:
                wrong.append(f"{name}: no answer in {SECONDS} s")
                continue
            if not (400 <= status < 500 or status in (501, 505) or (status == 0 and not whole)):
                wrong.append(f"{name}: status {status}")
    return wrong


def measure(server, send, sent: int) -> Result:
    """Sends the requests with `send`, and looks at the server's memory and whether it still serves."""
    server.reset_peak()
    before = server.resident_bytes()
    wrong = send()
    growth = (server.resident_bytes("VmHWM") - before) / MIB
    with grpc.insecure_channel(server.address) as channel:
        alive = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        if alive(b"", timeout=SECONDS) != b"\x08\x01":
            wrong.append("the server does not live afterwards")
    return Result(sent, wrong, growth)


def over_grpc(server) -> Result:
    return measure(server, lambda: send_grpc(server.address), len(grpc_requests()))


def over_rest(server) -> Result:
    found = measure(server, lambda: send_rest(server.http_port), len(rest_complete()) + len(rest_broken()))
    if status_of(server.http_port, post(document()), whole=True) != 200:  # else all would be refused for nothing
        found.wrong.append("a well-formed request: refused too")
    return found
