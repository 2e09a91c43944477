"""CTranslate2, with one worker that has all threads, or several with fewer threads and as many batches in flight."""
import json
import os
import pathlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import checkpoint
import worker

ENCODERS = ("bert", "xlm-roberta")
COMPUTE_TYPES = {"f32": "float32", "int8": "int8_float32"}


def _use_avx512() -> None:
    """Selects AVX-512 kernels for int8, which are faster than the AVX2 ones that it chooses by itself."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    if " avx512f " in flags:
        os.environ["CT2_FORCE_CPU_ISA"] = "AVX512"


class CTranslate2Peer(worker.Peer):
    def __init__(self, options):
        super().__init__()
        if options.dtype == "int8":
            _use_avx512()
        import ctranslate2  # it reads its environment when it is imported

        kind = json.loads((options.model / "config.json").read_text(encoding="utf-8"))["model_type"]
        if kind not in ENCODERS:
            raise worker.Refused(f"it has {kind} as a generator of texts only, which returns no hidden states")

        def convert(target: pathlib.Path) -> None:
            converter = ctranslate2.converters.TransformersConverter(str(options.model))
            converter.convert(str(target), force=True)

        self._encoder = ctranslate2.Encoder(
            str(checkpoint.converted(options.model, "ctranslate2", convert)), device="cpu",
            compute_type=COMPUTE_TYPES[options.dtype], inter_threads=options.streams,
            intra_threads=max(1, options.threads // options.streams))
        self._callers = ThreadPoolExecutor(options.streams)
        self._sequences = []

    def prepare(self, batches: list) -> None:
        super().prepare(batches)
        self._sequences = batches

    def run(self, batches: list) -> list:
        calls = [self._callers.submit(self._encoder.forward_batch, sequences) for sequences in self._sequences]
        return [call.result().last_hidden_state for call in calls]

    def to_numpy(self, result) -> np.ndarray:
        return np.array(result)


if __name__ == "__main__":
    worker.serve(lambda: CTranslate2Peer(worker.parse_options()))
