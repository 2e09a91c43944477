"""Infinity, over HTTP with a kept connection; it tokenizes.

Settings by its documentation ("CLI v2", "Usage: infinity_emb v2 --help"): the torch engine with BetterTransformer, which is
its default for BERT, and the engine "optimum", which is ONNX Runtime with the graph optimised at level 99. Batches of 4: of 4, 8
and 32, which is the default, that was the fastest with 32 callers, since batches are padded. Neither model warm-up nor usage
statistics. Answers as base64, which its pages of the API offer."""
import base64

import numpy as np

from contender import MODEL_NAME, Contender


class Infinity(Contender):
    exported = True
    needs = ("infinity",)
    engine = ""

    def command(self, port: int) -> list:
        return [self.place.python("infinity").with_name("infinity_emb"), "v2", "--model-id", self.place.exported / "checkpoint",
                "--served-model-name", MODEL_NAME, "--engine", self.engine, "--device", "cpu", "--dtype", "float32",
                "--batch-size", "4", "--host", "127.0.0.1", "--port", str(port), "--no-model-warmup", "--pooling-method", "mean", "--log-level", "warning"]

    def environment(self) -> dict:
        return {"DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0", "OMP_NUM_THREADS": str(self.place.threads),
                "HF_HUB_CACHE": str(self.folder / "cache")}

    async def connect(self, port: int) -> None:
        import aiohttp
        self._session = aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=aiohttp.TCPConnector(limit=0))

    async def embed(self, text: str):
        wanted = {"model": MODEL_NAME, "input": [text], "encoding_format": "base64"}
        async with self._session.post("/embeddings", json=wanted) as answer:
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}: {await answer.text()}")
            found = await answer.json()
        return np.frombuffer(base64.b64decode(found["data"][0]["embedding"]), np.float32)

    async def close(self) -> None:
        await self._session.close()

    def installed(self) -> list:
        return [self.place.site_packages("infinity"), self.place.checkpoint / "model.safetensors"]


class InfinityTorch(Infinity):
    name = "infinity-torch"
    engine = "torch"
    settings = "engine torch, BetterTransformer, batches of 4, HTTP with base64"


class InfinityOnnx(Infinity):
    name = "infinity-onnx"
    engine = "optimum"
    settings = "engine optimum (ONNX Runtime, optimised at level 99), batches of 4, HTTP with base64"
