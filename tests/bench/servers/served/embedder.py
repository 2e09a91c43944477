"""MiniLM on ONNX Runtime, for the servers that run one's own Python: texts in, unit vectors out."""
import pathlib

import numpy as np
import onnxruntime
import tokenizers

MOST_TOKENS = 256


class Embedder:
    """`folder`: the one named `fused` that export_onnx.py leaves.

    Runs the texts of a batch one after the other. On two cores that is faster than running them together, padded to the
    longest, and faster than groups of 2 or 4 of similar lengths: ONNX Runtime would compute the padding too.
    """

    def __init__(self, folder: pathlib.Path, threads: int):
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), settings, providers=["CPUExecutionProvider"])

    def __call__(self, texts: list) -> np.ndarray:
        return np.stack([self._embed(encoded.ids) for encoded in self._tokenizer.encode_batch(texts)])

    def _embed(self, ids: list) -> np.ndarray:
        given = np.array([ids], np.int64)
        hidden = self._session.run(None, {"input_ids": given, "attention_mask": np.ones_like(given)})[0]
        vector = hidden[0].mean(axis=0)
        return vector / np.linalg.norm(vector)
