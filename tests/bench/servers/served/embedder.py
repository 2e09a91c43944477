"""MiniLM on ONNX Runtime, for the servers that run one's own Python: texts in, unit vectors out."""
import pathlib

import numpy as np
import onnxruntime
import tokenizers

MOST_TOKENS = 256


class Embedder:
    """`folder`: the one named `fused` that export_onnx.py leaves."""

    def __init__(self, folder: pathlib.Path, threads: int):
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MOST_TOKENS)
        self._tokenizer.enable_padding()
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        # The threads of a pool that waits in a busy loop would take the cores from the server's own.
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), settings, providers=["CPUExecutionProvider"])

    def __call__(self, texts: list) -> np.ndarray:
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in encoded], np.int64)
        mask = np.array([one.attention_mask for one in encoded], np.int64)
        hidden = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        vectors = np.einsum("bse,bs->be", hidden, mask.astype(np.float32))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
