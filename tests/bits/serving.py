"""The two builds of attendant-server: what they report about themselves, and their processes."""
import json
import pathlib
import re
import subprocess
import tempfile

import grpc

from attendant.v1 import encoder_service_pb2 as pb

# An answer of a large model may take seconds while the machine does other work.
TIMEOUT_SECONDS = 300
_RESPONSES = {"Attend": pb.AttendResponse, "Encode": pb.EncodeResponse, "GetModel": pb.GetModelResponse}


def _describe(program: pathlib.Path, source: str, *flags: str) -> subprocess.CompletedProcess:
    return subprocess.run([program, "--describe", source, *flags], capture_output=True, text=True, check=False)


def synthetic_models(program: pathlib.Path) -> list:
    """The names that the refusal of an unknown name lists."""
    told = _describe(program, "synthetic:?").stdout
    listed = re.search(r"no synthetic model '\?'; there are (.*)", told)
    if not listed:
        raise RuntimeError(f"{program} does not list its synthetic models: {told}")
    return listed[1].split(", ")


def weight_bytes(program: pathlib.Path, source: str) -> int:
    """The size of its weights in float32."""
    return json.loads(_describe(program, source, "--json").stdout)["memory"]["weights"]["f32"]["bytes"]


def takes(program: pathlib.Path, source: str, cap: str) -> bool:
    """Whether the build serves this on this machine."""
    return _describe(program, source, "--isa", cap).returncode == 0


class Server:
    """A server process that runs inside a `with` statement."""

    def __init__(self, program: pathlib.Path, sources: dict, *flags: str):
        models = [word for name, source in sources.items() for word in ("--model", f"{name}={source}")]
        self._command = [program, *models, *flags, "--address", "127.0.0.1", "--port", "0", "--http-port", "0"]

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory()
        self._ports = pathlib.Path(self._scratch.name) / "ports"
        self._process = subprocess.Popen([*self._command, "--port-file", self._ports], stderr=subprocess.PIPE,
                                         text=True)
        self._channel = None
        return self

    def __exit__(self, *_):
        if self._channel:
            self._channel.close()
        self._process.terminate()
        self._process.communicate()
        self._scratch.cleanup()

    def connect(self) -> None:
        """Waits until it is ready. RuntimeError, with its log, if it ends before."""
        log = []
        while not self._ports.exists():  # each iteration waits for a line of the log, which ends with the server
            log.append(self._process.stderr.readline())
            if not log[-1]:
                raise RuntimeError("the server did not start:\n" + "".join(log))
        port = dict(line.split("=") for line in self._ports.read_text().split())["grpc_port"]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)])

    def ask(self, method: str, request):
        """Returns the response. grpc.RpcError if the request is refused."""
        call = self._channel.unary_unary(f"/attendant.v1.EncoderService/{method}",
                                         request_serializer=type(request).SerializeToString,
                                         response_deserializer=_RESPONSES[method].FromString)
        return call(request, timeout=TIMEOUT_SECONDS)


def thread_plan(program: pathlib.Path, cap: str) -> pb.ThreadPlan | None:
    """Returns the thread plan under this cap, which has the instruction set; None if the build does not know the
    cap."""
    with Server(program, {"m": "worked-example"}, "--isa", cap) as server:
        try:
            server.connect()
        except RuntimeError:
            return None
        return server.ask("GetModel", pb.GetModelRequest()).thread_plan
