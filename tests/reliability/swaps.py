"""Versions of a model that replace each other while callers call."""
import collections
import json
import pathlib
import tempfile
import threading
import time

import grpc
import numpy as np
from attendant.v1 import encoder_service_pb2 as pb
from attendant.v1 import tensor_pb2

import calls
import checkpoints
from cases import Model
from report import Measured
from server_process import NotMeasured

TINY = Model("tiny", 2, 32, 2, 64)
ENCODE, CALLERS, CALL_SECONDS, SWAP_SECONDS = "/attendant.v1.EncoderService/Encode", 8, 30, 60
SHORT, LONG = 20, 200


def write_version(repository: pathlib.Path, version: int) -> None:
    """A version all of whose answers are its number: the last layer's norm multiplies by next to nothing, since weights
    of 0 are refused, and adds the number."""
    staging = checkpoints.write(TINY, repository.parent / f"staging-{version}")
    with open(staging / "model.safetensors", "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        for part, value in (("weight", 1e-30), ("bias", version)):
            begin, end = header[f"encoder.layer.{TINY.layers - 1}.output.LayerNorm.{part}"]["data_offsets"]
            file.seek(8 + size + begin)
            file.write(np.full((end - begin) // 4, value, dtype=np.float32).tobytes())
    (repository / "m").mkdir(parents=True, exist_ok=True)
    staging.rename(repository / "m" / str(version))


def _request() -> bytes:
    rows = np.random.default_rng(1).standard_normal((1, 8, TINY.hidden_size), dtype=np.float32)
    tensor = tensor_pb2.Tensor(dtype=tensor_pb2.FLOAT32, shape=rows.shape, data=rows.tobytes())
    return pb.EncodeRequest(model="m", hidden_states=tensor).SerializeToString()


def fault_of(answer: pb.EncodeResponse, before: int) -> str | None:
    """Why the answer is wrong that a caller gets after one of version `before`."""
    version = answer.execution.model_version
    values = np.frombuffer(answer.hidden_states.data, dtype=np.float32)
    if values.size == 0 or not np.all(values == version):
        return f"an answer of version {version} with other values"
    return f"version {version} after {before}" if version < before else None


class _Caller(threading.Thread):
    """Calls one time after the other, without another try."""

    def __init__(self, address: str):
        super().__init__(daemon=True)
        self._channel, self._request, self._stopping = calls.open_channel(address), _request(), threading.Event()
        self.version, self.calls, self.failures = 0, 0, collections.Counter()
        self.start()

    def run(self) -> None:
        encode = calls.method(self._channel, ENCODE)
        while not self._stopping.is_set():
            self.calls += 1
            try:
                answer = pb.EncodeResponse.FromString(encode(self._request, timeout=CALL_SECONDS))
            except grpc.RpcError as error:
                self.failures[f"{error.code().name} {(error.details() or '')[:80]}"] += 1
                continue
            fault = fault_of(answer, self.version)
            if fault:
                self.failures[fault] += 1
            self.version = answer.execution.model_version

    def stop(self) -> None:
        self._stopping.set()
        self.join()
        self._channel.close()


def _await_version(callers: list, version: int) -> None:
    patience = time.monotonic() + SWAP_SECONDS
    while any(caller.version < version for caller in callers):
        if time.monotonic() > patience:
            raise NotMeasured(f"version {version} is not served after {SWAP_SECONDS} s")
        time.sleep(0.002)


def measure(setup) -> dict:
    swaps = LONG if setup.long else SHORT
    with tempfile.TemporaryDirectory() as scratch:
        repository = pathlib.Path(scratch) / "repository"
        write_version(repository, 1)
        with setup.serve(f"--model-repository={repository}", "--repository-poll=20ms") as server:
            callers = [_Caller(server.address) for _ in range(CALLERS)]
            try:
                for version in range(1, swaps + 2):
                    if version > 1:
                        write_version(repository, version)
                    _await_version(callers, version)
            finally:
                for caller in callers:
                    caller.stop()
            loads = server.metric("attendant_model_loads_total", model="m", result="ok")
    if loads != swaps + 1:
        raise NotMeasured(f"the server loaded {loads:.0f} versions of {swaps + 1}")
    failures = sum((caller.failures for caller in callers), collections.Counter())
    for why, times in failures.most_common(4):
        setup.note(f"swap: {times} x {why}")
    return {"swap.failures": Measured(sum(failures.values()), sum(caller.calls for caller in callers))}
