"""What it costs to call from Python, and through the Open Inference Protocol. Contenders take turns; a figure is the median of
the rounds."""
import collections
import json
import pathlib
import statistics
import subprocess
import time

import grpc
import numpy as np
from attendant_client import Client
from attendant_client.requests import attend_request
from fields import field, tensor

MODEL = "l6"  # synthetic:minilm-l6
TOKENS = 128
WIDTH = 384
CHANNEL = [("grpc.max_receive_message_length", -1)]


def overhead_of_python(program: pathlib.Path, address: str, rounds: int, calls: int) -> list:
    """The median time of a 1 x 128 encode by the Python client over that by the C++ client, of each round."""
    ids = np.random.default_rng(1).integers(1000, 20_000, (1, TOKENS))

    def cpp() -> float:
        done = subprocess.run([program, "load-test", "--address", address, "--method", "encode", "--model", MODEL, "--lengths",
                               str(TOKENS), "--token-ids", "--concurrency", "1", "--requests", str(calls), "--warmup", "0",
                               "--json"], capture_output=True, text=True, check=True, timeout=300)
        return json.loads(done.stdout)["steps"][0]["latency_ms"]["p50"] / 1000

    with Client(address) as client:
        def python() -> float:
            taken = []
            for _ in range(calls):
                begin = time.perf_counter()
                client.encode(MODEL, input_ids=ids)
                taken.append(time.perf_counter() - begin)
            return statistics.median(taken)

        return in_turns(python, cpp, rounds)


def oip_over_native(address: str, rounds: int, calls: int) -> list:
    """The throughput of a layer's attention through ModelInfer over that through Attend, of each round. Both are sent and
    received as bytes, over connections of the same library, four calls under way."""
    rows = np.random.default_rng(1).standard_normal((8, TOKENS, WIDTH)).astype(np.float32)
    native = bytes(attend_request(MODEL, hidden_states=rows).message())
    oip = (field(1, f"{MODEL}.hidden".encode()) + tensor(b"hidden_states", b"FP32", rows.shape) +
           field(6, field(1, b"context_layer")) + field(7, rows.tobytes()))

    def throughput(path: str, message: bytes):
        call = channels[path].unary_unary(path)
        expected = rows.nbytes

        def measure() -> float:
            waiting, begin = collections.deque(), time.perf_counter()
            for _ in range(calls):
                waiting.append(call.future(message, timeout=60))
                if len(waiting) == 4:
                    check(waiting.popleft().result(), expected)
            while waiting:
                check(waiting.popleft().result(), expected)
            return calls / (time.perf_counter() - begin)

        return measure

    paths = "/inference.GRPCInferenceService/ModelInfer", "/attendant.v1.EncoderService/Attend"
    channels = {path: grpc.insecure_channel(address, CHANNEL) for path in paths}
    try:
        return in_turns(throughput(paths[0], oip), throughput(paths[1], native), rounds)
    finally:
        for channel in channels.values():
            channel.close()


def check(answer: bytes, least: int) -> None:
    if len(answer) < least:
        raise ValueError(f"an answer of {len(answer)} bytes, where the rows alone have {least}")


def in_turns(first, second, rounds: int) -> list:
    """What `first` returns over what `second` returns, of each round, after one that does not count."""
    ratios = []
    for i in range(rounds + 1):
        if i % 2 == 0:
            mine, other = first(), second()
        else:
            other, mine = second(), first()
        ratios.append(mine / other)
    return ratios[1:]
