"""The Python side of the workers' protocol (tests/bench/worker.h), and the code that padding engines share."""
import abc
import argparse
import dataclasses
import json
import pathlib
import sys
import time

import numpy as np


class Refused(Exception):
    """The reason why this peer cannot run here."""


@dataclasses.dataclass
class PaddedBatch:
    """A batch of sequences, padded with zeros to the longest of them."""
    ids: np.ndarray  # [B, S]
    mask: np.ndarray  # [B, S], 1 for kept tokens
    lengths: list

    @classmethod
    def of(cls, sequences: list) -> "PaddedBatch":
        lengths = [len(sequence) for sequence in sequences]
        ids = np.zeros((len(sequences), max(lengths)), dtype=np.int64)
        for row, sequence in zip(ids, sequences):
            row[: len(sequence)] = sequence
        mask = (np.arange(ids.shape[1])[None, :] < np.array(lengths)[:, None]).astype(np.int64)
        return cls(ids, mask, lengths)


class Peer(abc.ABC):
    """One engine in one configuration, its model loaded."""

    def __init__(self):
        self._batches = []

    def prepare(self, batches: list) -> None:
        self._batches = [PaddedBatch.of(sequences) for sequences in batches]

    @abc.abstractmethod
    def run(self, batches: list) -> list:
        """Returns the last hidden states of each batch, in the form that costs the engine least."""

    @abc.abstractmethod
    def to_numpy(self, result) -> np.ndarray:
        """Returns [B, S, E] of one batch."""

    def facts(self) -> dict:
        """Returns the facts that the peer knows about itself."""
        return {}

    def run_prepared(self) -> float:
        begin = time.perf_counter()
        self.run(self._batches)
        return time.perf_counter() - begin

    def save_prepared(self, file: pathlib.Path) -> None:
        with open(file, "wb") as target:
            for batch, result in zip(self._batches, self.run(self._batches)):
                hidden = self.to_numpy(result).astype(np.float32)
                for row, length in zip(hidden, batch.lengths):
                    target.write(row[:length].tobytes())


def parse_options(*extra_flags) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--dtype", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    for flag in extra_flags:
        parser.add_argument(flag, required=True)
    return parser.parse_args()


def _answer(peer: Peer, command: str, argument: str) -> str:
    if command == "prepare":
        peer.prepare(json.loads(pathlib.Path(argument).read_text(encoding="utf-8"))["batches"])
        return ""
    if command == "facts":
        return json.dumps(peer.facts())
    if command == "run":
        return " ".join(f"{peer.run_prepared():.9g}" for _ in range(int(argument)))
    if command == "save":
        peer.save_prepared(pathlib.Path(argument))
        return ""
    raise ValueError(f"no such command: {command}")


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:300]


def serve(make) -> None:
    """Answers commands until the end of the input. `make()` loads the peer."""
    try:
        peer = make()
    except Exception as error:  # the table shows as the reason whatever a library throws
        print(f"refused {_one_line(error)}", flush=True)
        return
    print("ready", flush=True)
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        try:
            print(f"ok {_answer(peer, command, argument)}", flush=True)
        except Exception as error:
            print(f"error {_one_line(error)}", flush=True)
