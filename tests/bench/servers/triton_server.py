"""Triton: the server inside PyPI's nvidia-pytriton, with its Python backend over ONNX Runtime, which tokenizes.

Settings by its documentation ("Model Configuration", "Batchers", python_backend's README): the dynamic batcher with batches
of up to 32 and no delay, so that an idle instance starts at once, and one instance, for ONNX Runtime has both cores. The
texts are strings, for the batcher joins tensors of one shape only, and those of token ids would differ. PyPI has neither
Triton's ONNX Runtime backend nor one that needs no Python. Vectors come in binary ("Binary Tensor Data Extension")."""
import os
import pathlib
import shutil

import numpy as np

from contender import MODEL_NAME
from oip import OpenInference
from ports import free_port

SERVED = pathlib.Path(__file__).parent / "served"
CONFIG = f"""
name: "{MODEL_NAME}"
backend: "python"
max_batch_size: 32
input [ {{ name: "text" data_type: TYPE_STRING dims: [ 1 ] }} ]
output [ {{ name: "vector" data_type: TYPE_FP32 dims: [ 384 ] }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
dynamic_batching {{ }}
"""


class Triton(OpenInference):
    name = "triton"
    exported = True
    needs = ("triton",)
    settings = ("Python backend on ONNX Runtime, dynamic batches of up to 32 without delay, run text by text, Open Inference "
                "Protocol over HTTP with vectors in binary")

    @property
    def _package(self) -> pathlib.Path:
        return self.place.site_packages("triton") / "pytriton" / "tritonserver"

    def prepare(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        python = self.folder / "backends" / "python"
        shutil.copytree(self._package / "backends" / "python", python)
        version = self.place.site_packages("triton").parent.name.removeprefix("python")
        shutil.copy(self._package / "python_backend_stubs" / version / "triton_python_backend_stub", python)
        model = self.folder / "models" / MODEL_NAME
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
        shutil.copy(SERVED / "triton_model.py", model / "1" / "model.py")
        shutil.copy(SERVED / "embedder.py", model / "1")

    def command(self, port: int) -> list:
        return [self._package / "bin" / "tritonserver", "--model-repository", self.folder / "models", "--backend-directory",
                self.folder / "backends", "--grpc-address", "127.0.0.1", "--grpc-port", str(free_port()), "--http-address",
                "127.0.0.1", "--http-port", str(port), "--allow-metrics", "false"]

    def environment(self) -> dict:
        packages = self.place.site_packages("triton")
        path = f"{self.place.python('triton').parent}:{os.environ['PATH']}"  # where the backend looks for its Python
        return {"PATH": path, "SERVED_MODEL": str(self.place.exported / "fused"),
                "SERVED_THREADS": str(self.place.threads), "LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs")}

    def body(self, text: str) -> dict:
        return super().body(text) | {"outputs": [{"name": "vector", "parameters": {"binary_data": True}}]}

    def vector(self, content: bytes, headers) -> np.ndarray:
        return np.frombuffer(content[int(headers["Inference-Header-Content-Length"]):], np.float32)

    def installed(self) -> list:
        return [self.place.site_packages("triton"), self.place.exported / "fused"]
