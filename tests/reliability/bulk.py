"""Bulk work of ten times what the queue admits: what of it is refused or lost, and how long a new caller waits beside it. The
server has one core, its callers the other."""
import contextlib
import statistics
import threading
import time

import grpc
import numpy as np

import arithmetic
from attendant.v1 import encoder_service_pb2 as pb
from attendant.v1 import tensor_pb2
from calls import ENCODE, method, open_channel, reason_of
from load import from_address, load_test
from report import Measured
from server_process import cores, pinned

STREAM = "/attendant.v1.EncoderService/EncodeStream"
LENGTH, SEQUENCES = 512, 32  # as many tokens as --max-request-tokens allows
FLAGS = ("--model=m=synthetic:minilm-l6", f"--max-request-tokens={LENGTH * SEQUENCES}")
ONE = ("--token-ids", "--pooled", "--lengths", LENGTH, "--concurrency", 1, "--duration", "4s")
BUSY = ("127.0.0.2", "127.0.0.3", "127.0.0.4")  # with the work of a stream, of another one and of a unary call
NEW = "127.0.0.5"
SHORT, LONG = 3, 7  # rounds
ANSWERS_BEFORE = 2  # of each stream, before the new caller comes


def _request(sequences: int) -> pb.EncodeRequest:
    ids = np.random.default_rng(1).integers(0, 1000, (sequences, LENGTH), dtype=np.int32)
    return pb.EncodeRequest(token_ids=tensor_pb2.Tensor(dtype=tensor_pb2.INT32, shape=ids.shape, data=ids.tobytes()),
                            return_pooled=True, omit_hidden_states=True)


class Caller(threading.Thread):
    """Brings all of the work at once, as items of a stream or in one call, and counts what comes back."""

    def __init__(self, address: str, unary: bool = False):
        super().__init__(daemon=True)
        self._address = address
        self._run = self._call if unary else self._stream
        self.attempted = 1 if unary else SEQUENCES
        self.begun = threading.Event()  # enough answers have come, or none comes any more
        self.answered, self.first_s, self.failures = 0, float("nan"), []

    def run(self) -> None:
        begin = time.monotonic()
        try:
            with contextlib.closing(open_channel(self._address)) as channel:
                for error in self._run(channel):
                    self._count(error, time.monotonic() - begin)
        except grpc.RpcError as error:
            self.failures.append(f"{error.code().name} {reason_of(error)}: {error.details()}")
        self.begun.set()

    def failed(self) -> int:
        """What was refused, or is lost."""
        self.join()
        return self.attempted - self.answered

    def _count(self, error: str, seconds: float) -> None:
        if error:
            self.failures.append(error)
            return
        self.answered += 1
        if self.answered == 1:
            self.first_s = seconds
        if self.answered == ANSWERS_BEFORE:
            self.begun.set()

    def _stream(self, channel: grpc.Channel):
        request = _request(1)
        items = (pb.EncodeStreamRequest(id=item, request=request).SerializeToString() for item in range(SEQUENCES))
        for answer in channel.stream_stream(STREAM)(items):
            error = pb.EncodeStreamResponse.FromString(answer).error
            yield f"{error.code} {error.reason}: {error.message}" if error.code else ""

    def _call(self, channel: grpc.Channel):
        self.begun.set()
        method(channel, ENCODE)(_request(SEQUENCES).SerializeToString())
        yield ""


def measure(setup) -> dict:
    server_core, core = cores()
    with setup.serve(*FLAGS, launcher=pinned(server_core)) as server:
        one_slice = load_test(setup, server.address, *ONE, core=core)["latency_ms"]["p50"] / 1000
    admitted = SEQUENCES * one_slice / 10
    setup.note(f"bulk: a slice of {LENGTH} tokens takes {1000 * one_slice:.0f} ms, and the queue admits {admitted:.2f} s")
    callers, waited = [], []
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(setup.serve(*FLAGS, f"--max-queue-seconds={admitted:.3f}s", launcher=pinned(server_core)))
        *busy, new = [stack.enter_context(from_address(source, server.port, core)) for source in (*BUSY, NEW)]
        for unary in (False, True):
            callers.append(Caller(busy[0], unary))
            callers[-1].start()
            callers[-1].join()
        for _ in range(LONG if setup.long else SHORT):
            before = [Caller(busy[0]), Caller(busy[1]), Caller(busy[2], unary=True)]
            for caller in before:
                caller.start()
            for caller in before:
                caller.begun.wait()
            last = Caller(new)
            last.start()
            for caller in (*before, last):
                caller.join()
            callers += [*before, last]
            # Its share is every fourth slice.
            waited.append(arithmetic.slices_waited(last.first_s, 4 * one_slice, one_slice))
            setup.say(f"the new caller's first answer after {last.first_s:.2f} s: {waited[-1]:.2f} slices beyond its share")
        refusals = server.metric("attendant_refusals_total")
    for failure in sorted({failure for caller in callers for failure in caller.failures}):
        setup.note(f"bulk: {failure}")
    attempted = sum(caller.attempted for caller in callers)
    return {"bulk.refused": Measured(max(refusals, sum(caller.failed() for caller in callers)), attempted),
            "bulk.newcomer_slices": Measured(statistics.median(waited), len(waited))}
