"""A server with OpenAI's API of embeddings."""
import base64
import json

import numpy as np

from contender import MODEL_NAME
from over_http import OverHttp


class OpenAi(OverHttp):
    def body(self, text: str) -> dict:
        return {"model": MODEL_NAME, "input": [text], "encoding_format": "base64"}

    def vector(self, content: bytes, headers) -> np.ndarray:
        return np.frombuffer(base64.b64decode(json.loads(content)["data"][0]["embedding"]), np.float32)
