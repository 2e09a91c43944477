"""A contender that speaks the workers' protocol, and knows the right answers.

    fake_peer.py right|rounded|wrong|nan|absent|hangs
"""
import pathlib
import signal
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
import worker  # noqa: E402

WIDTH = 384


def hidden_states(ids: np.ndarray) -> np.ndarray:
    """[..., WIDTH] of token ids, each its own."""
    return np.sin((ids[..., None] + 1.0) * np.arange(1, WIDTH + 1))


class FakePeer(worker.Peer):
    def __init__(self, answers: str):
        super().__init__()
        if answers == "absent":
            raise worker.Refused("not installed")
        self._answers = answers

    def run(self, batches: list) -> list:
        if self._answers == "hangs" and sum(len(batch.ids) for batch in batches) == 1:
            signal.pause()
        right = [hidden_states(batch.ids) for batch in batches]
        changed = {"right": lambda x: x, "hangs": lambda x: x, "rounded": lambda x: np.round(x, 1), "wrong": lambda x: -x,
                   "nan": lambda x: np.full_like(x, np.nan)}[self._answers]
        return [changed(batch) for batch in right]

    def facts(self) -> dict:
        return {"weight_bytes": 1000, "run_bytes": 10, "isa": "avx2", "onednn": "2.6", "threads": 2, "threads_reason": "",
                "product_plans": []}

    def to_numpy(self, result) -> np.ndarray:
        return result


if __name__ == "__main__":
    worker.serve(lambda: FakePeer(sys.argv[1]))
