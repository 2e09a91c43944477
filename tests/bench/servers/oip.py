"""A caller of the Open Inference Protocol over gRPC: texts in, vectors out."""
import numpy as np

from contender import MODEL_NAME, Contender


class OpenInference(Contender):
    async def connect(self, port: int) -> None:
        import tritonclient.grpc.aio as protocol
        self._protocol = protocol
        self._client = protocol.InferenceServerClient(f"127.0.0.1:{port}")

    async def embed(self, text: str):
        given = self._protocol.InferInput("text", [1, 1], "BYTES")
        given.set_data_from_numpy(np.array([[text.encode()]], dtype=np.object_))
        answer = await self._client.infer(MODEL_NAME, [given])
        return answer.as_numpy("vector")[0]

    async def close(self) -> None:
        await self._client.close()
