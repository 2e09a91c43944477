"""Infinity, by OpenAI's API.

Settings by its documentation ("CLI v2", "Usage: infinity_emb v2 --help"): the torch engine with BetterTransformer, which is
its default for BERT, and the engine "optimum", which is ONNX Runtime with the graph optimised at level 99. Batches of 4: of 4, 8
and 32, which is the default, that was the fastest with 32 callers, since batches are padded. Neither model warm-up nor usage
statistics. Answers as base64, which its pages of the API offer."""
from contender import MODEL_NAME
from openai_api import OpenAi


class Infinity(OpenAi):
    path = "/embeddings"
    exported = True
    needs = ("infinity",)
    engine = ""

    def command(self, port: int) -> list:
        return [self.place.python("infinity").with_name("infinity_emb"), "v2", "--model-id", self.place.exported / "checkpoint",
                "--served-model-name", MODEL_NAME, "--engine", self.engine, "--device", "cpu", "--dtype", "float32",
                "--batch-size", "4", "--host", "127.0.0.1", "--port", str(port), "--no-model-warmup", "--pooling-method", "mean",
                "--log-level", "warning"]

    def environment(self) -> dict:
        return {"DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0", "OMP_NUM_THREADS": str(self.place.threads),
                "HF_HUB_CACHE": str(self.folder / "cache")}

    def installed(self) -> list:
        return [self.place.site_packages("infinity"), self.place.checkpoint / "model.safetensors"]


class InfinityTorch(Infinity):
    name = "infinity-torch"
    engine = "torch"
    settings = "engine torch, BetterTransformer, batches of 4, /embeddings with base64"


class InfinityOnnx(Infinity):
    name = "infinity-onnx"
    engine = "optimum"
    settings = "engine optimum (ONNX Runtime, optimised at level 99), batches of 4, /embeddings with base64"
