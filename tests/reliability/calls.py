"""Calls over gRPC from Python, for callers whose number is small or whose patience is measured."""
import pathlib
import threading
import time

import grpc
import numpy as np
from attendant.v1 import encoder_service_pb2 as pb
from attendant.v1 import tensor_pb2

ATTEND = "/attendant.v1.EncoderService/Attend"
ENCODE = "/attendant.v1.EncoderService/Encode"
LIST_MODELS = "/attendant.v1.EncoderService/ListModels"
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
TINY_WIDTH = 32
GOOD_CALL_SECONDS, GOOD_CALL_PAUSE = 10, 0.05


def attend_request(sequences: int, length: int, width: int = TINY_WIDTH, probabilities: bool = False) -> bytes:
    """An Attend request [sequences, length, width] of float32, to the server's only model."""
    return pb.AttendRequest(hidden_states=_rows(sequences, length, width),
                            return_attention_probabilities=probabilities).SerializeToString()


def encode_request(sequences: int, length: int, width: int) -> bytes:
    """An Encode request of the same rows, through all layers of the server's only model."""
    return pb.EncodeRequest(hidden_states=_rows(sequences, length, width)).SerializeToString()


def _rows(sequences: int, length: int, width: int) -> tensor_pb2.Tensor:
    data = np.random.default_rng(1).standard_normal(sequences * length * width, dtype=np.float32).tobytes()
    return tensor_pb2.Tensor(dtype=tensor_pb2.FLOAT32, shape=[sequences, length, width], data=data)


def open_channel(target: str, *options, authority: pathlib.Path | None = None) -> grpc.Channel:
    """A channel with a connection of its own; with TLS if `authority`, the certificate that signed the server's, is given."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 1 << 28), *options]
    if authority is None:
        return grpc.insecure_channel(target, options=options)
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(authority.read_bytes()), options=options)


def method(channel: grpc.Channel, name: str = ATTEND):
    """A unary method that takes and returns bytes, so that Python spends no time on messages."""
    return channel.unary_unary(name)


def reason_of(error: grpc.RpcError) -> str | None:
    return dict(error.trailing_metadata() or ()).get("attendant-reason")


class GoodCaller(threading.Thread):
    """A caller from 127.0.0.1 with small calls, one after the other, each tried until it is answered. On leaving the
    context it has waited for the last one."""

    def __init__(self, server, name: str = ATTEND, request: bytes | None = None):
        super().__init__(daemon=True)
        self._channel = open_channel(server.address, authority=server.authority)
        self._name, self._request = name, attend_request(1, 4) if request is None else request
        self._stopping = threading.Event()
        self.calls, self.failures, self.worst = 0, 0, 0.0

    def __enter__(self):
        self.call()  # connects
        self.calls, self.failures, self.worst = 0, 0, 0.0
        self.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self.join()
        self._channel.close()

    def run(self) -> None:
        while not self._stopping.wait(GOOD_CALL_PAUSE):
            self.call()

    def call(self) -> None:
        send, begin = method(self._channel, self._name), time.monotonic()
        while True:
            self.calls += 1
            try:
                send(self._request, timeout=GOOD_CALL_SECONDS)
                break
            except grpc.RpcError:
                self.failures += 1
                if self._stopping.is_set():
                    break
                time.sleep(0.01)
        self.worst = max(self.worst, time.monotonic() - begin)
