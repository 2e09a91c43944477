"""Runs the server on folders of checkpoints and sends it requests."""
import contextlib
import pathlib
import subprocess
import sys
import tempfile

import grpc
import numpy as np

from attendant.v1 import encoder_service_pb2 as pb
from attendant.v1 import tensor_pb2

DTYPES = {np.dtype(np.int64): tensor_pb2.INT64, np.dtype(np.uint8): tensor_pb2.UINT8,
          np.dtype(np.float32): tensor_pb2.FLOAT32}


@contextlib.contextmanager
def serve_ports(program: str, folders: dict, *flags: str):
    """Runs the server on the models {name: folder} and yields the lines of its port file."""
    with tempfile.TemporaryDirectory() as scratch:
        ports = pathlib.Path(scratch) / "ports"
        models = [word for name, folder in folders.items() for word in ("--model", f"{name}={folder}")]
        process = subprocess.Popen(
            [program, *models, "--port", "0", "--http-port", "0", "--port-file", str(ports), *flags],
            stderr=subprocess.PIPE, text=True)
        try:
            log = []
            while not ports.exists():  # each iteration waits for a line of the log, which ends with the server
                log.append(process.stderr.readline())
                if not log[-1]:
                    sys.exit("the server did not start:\n" + "".join(log))
            yield dict(line.split("=") for line in ports.read_text().split())
        finally:
            process.terminate()
            process.communicate(timeout=60)


@contextlib.contextmanager
def serve(program: str, folders: dict, *flags: str):
    """Does the same and yields its gRPC port."""
    with serve_ports(program, folders, *flags) as ports:
        yield int(ports["grpc_port"])


def encoder(port: int):
    """Returns the method Encode, which can be called directly or with `.future`."""
    channel = grpc.insecure_channel(f"localhost:{port}", options=[("grpc.max_receive_message_length", 1 << 28)])
    return channel.unary_unary("/attendant.v1.EncoderService/Encode",
                               request_serializer=pb.EncodeRequest.SerializeToString,
                               response_deserializer=pb.EncodeResponse.FromString)


def getter(port: int):
    """Returns the method GetModel."""
    return grpc.insecure_channel(f"localhost:{port}").unary_unary(
        "/attendant.v1.EncoderService/GetModel", request_serializer=pb.GetModelRequest.SerializeToString,
        response_deserializer=pb.GetModelResponse.FromString)


def to_tensor(array: np.ndarray) -> tensor_pb2.Tensor:
    return tensor_pb2.Tensor(dtype=DTYPES[array.dtype], shape=array.shape, data=np.ascontiguousarray(array).tobytes())


def to_array(tensor: tensor_pb2.Tensor) -> np.ndarray:
    return np.frombuffer(tensor.data, np.float32).reshape(tensor.shape).astype(np.float64)


def to_dense(sparse: pb.SparseVectors, width: int) -> np.ndarray:
    """Returns the vectors with their zeros, [B, width]."""
    indices = np.frombuffer(sparse.indices.data, np.int32)
    dense = np.zeros((len(sparse.counts), width))
    dense[np.repeat(np.arange(len(sparse.counts)), sparse.counts), indices] = to_array(sparse.weights)
    return dense
