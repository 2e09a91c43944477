"""The model of Triton's Python backend. The dynamic batcher hands over all requests of a batch."""
import os
import pathlib

import numpy as np
import triton_python_backend_utils as pb_utils
from embedder import Embedder


class TritonPythonModel:
    def initialize(self, _):
        self._embed = Embedder(pathlib.Path(os.environ["SERVED_MODEL"]), int(os.environ["SERVED_THREADS"]))

    def execute(self, requests):
        given = [pb_utils.get_input_tensor_by_name(request, "text").as_numpy()[:, 0] for request in requests]
        vectors = self._embed([text.decode() for texts in given for text in texts])
        parts = np.split(vectors, np.cumsum([len(texts) for texts in given])[:-1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("vector", part)]) for part in parts]
