"""Client programs: runs them, and tells the versions of Go's."""
import base64
import os
import pathlib
import re
import subprocess

import common
import numpy as np

TIMEOUT_SECONDS = 120


def run(*command: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
                          env={**os.environ, **environment}, check=False)


def output(*command: object, **environment: str) -> str:
    done = run(*command, **environment)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def go_program(name: str) -> pathlib.Path:
    return pathlib.Path(common.options().programs) / name


def go_version(name: str) -> str:
    """The version of the module that the program was built from."""
    built = output("go", "version", "-m", go_program(name))
    return re.search(r"^\s*mod\s+\S+\s+(\S+)", built, re.M)[1]


def infer_request(expected: dict) -> dict:
    """A ModelInferRequest in JSON, with ids in lists and one output."""
    ids, mask = expected["ids"], expected["mask"]
    inputs = [{"name": name, "datatype": "INT64", "shape": list(array.shape), "contents": {"int64_contents": array.ravel().tolist()}}
              for name, array in (("input_ids", ids), ("attention_mask", mask))]
    return {"model_name": "minilm", "id": "seven", "inputs": inputs, "outputs": [{"name": "sentence_embedding"}]}


def floats(text: str) -> np.ndarray:
    """The elements of bytes as protobuf's JSON has them."""
    return np.frombuffer(base64.b64decode(text), np.float32)
