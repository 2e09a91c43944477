"""A server with the Open Inference Protocol over HTTP: texts in, vectors out."""
import json

import numpy as np

from contender import MODEL_NAME
from over_http import OverHttp


class OpenInference(OverHttp):
    path = f"/v2/models/{MODEL_NAME}/infer"

    def body(self, text: str) -> dict:
        return {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [text]}]}

    def vector(self, content: bytes, headers) -> np.ndarray:
        return np.array(json.loads(content)["outputs"][0]["data"], np.float32)
