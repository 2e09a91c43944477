#!/usr/bin/env python3
"""Serves the folders of make_torch_modules.py and compares every answer with torch's.

    compare_torch_modules.py SERVER_PROGRAM PROTO_FOLDER SCRATCH_FOLDER
"""
import json
import pathlib
import subprocess
import sys

import grpc
import numpy as np

TOLERANCE = 2e-6


def make_stubs(proto: pathlib.Path, target: pathlib.Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["protoc", f"--proto_path={proto}", f"--python_out={target}", "attendant/v1/tensor.proto",
                    "attendant/v1/encoder_service.proto"], check=True)
    sys.path.insert(0, str(target))


def ask(channel, case: dict, folder: pathlib.Path) -> np.ndarray:
    from attendant.v1 import encoder_service_pb2 as pb, tensor_pb2

    def tensor(name, dtype):
        array = np.load(folder / name)
        return tensor_pb2.Tensor(dtype=dtype, shape=array.shape, data=array.tobytes())

    fields = dict(model=case["name"], hidden_states=tensor("input.npy", tensor_pb2.FLOAT32),
                  attention_mask=tensor("attention_mask.npy", tensor_pb2.INT64))
    if case["method"] == "cross":
        fields["memory"] = pb.Memory(hidden_states=tensor("memory.npy", tensor_pb2.FLOAT32),
                                     values=tensor("values.npy", tensor_pb2.FLOAT32),
                                     attention_mask=tensor("memory_mask.npy", tensor_pb2.INT64))
    if case["method"] in ("attend", "cross"):
        method, request, response = "Attend", pb.AttendRequest(stage=pb.PROJECTED, **fields), pb.AttendResponse
    else:
        method, request, response = "Encode", pb.EncodeRequest(**fields), pb.EncodeResponse
    call = channel.unary_unary(f"/attendant.v1.EncoderService/{method}",
                               request_serializer=type(request).SerializeToString,
                               response_deserializer=response.FromString)
    answer = call(request, timeout=60)
    output = answer.output if method == "Attend" else answer.hidden_states
    return np.frombuffer(output.data, "<f4").reshape(output.shape)


def main() -> None:
    program, proto, scratch = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    make_stubs(proto, scratch / "stubs")
    maker = pathlib.Path(__file__).with_name("make_torch_modules.py")
    subprocess.run([sys.executable, str(maker), str(scratch)], check=True)
    cases = json.loads((scratch / "cases.json").read_text())
    ports = scratch / "ports"
    ports.unlink(missing_ok=True)
    models = [argument for case in cases for argument in ("--model", f"{case['name']}={scratch / case['name']}")]
    server = subprocess.Popen([program, *models, "--port", "0", "--http-port", "0", "--port-file", str(ports)],
                              stderr=subprocess.PIPE, text=True)
    try:
        while not ports.exists():  # each iteration waits for a line of the log, which ends with the server
            if not server.stderr.readline():
                sys.exit("the server did not start")
        port = dict(line.split("=") for line in ports.read_text().split())["grpc_port"]
        worst = 0.0
        with grpc.insecure_channel(f"localhost:{port}") as channel:
            for case in cases:
                folder = scratch / case["name"]
                error = np.abs(ask(channel, case, folder) - np.load(folder / "expected.npy")).max()
                print(f"{case['name']:32} {error:.2e}")
                worst = max(worst, error)
    finally:
        server.terminate()
        server.communicate(timeout=60)
    if not worst <= TOLERANCE:
        sys.exit(f"largest error {worst:.2e}, allowed {TOLERANCE:.0e}")


main()
