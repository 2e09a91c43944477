"""MLServer's runtime."""
import os
import pathlib

from embedder import Embedder as Model
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Embedder(MLModel):
    async def load(self) -> bool:
        self._embed = Model(pathlib.Path(self.settings.parameters.uri), int(os.environ["SERVED_THREADS"]))
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        vectors = self._embed(StringCodec.decode_input(payload.inputs[0]))
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("vector", vectors)])
