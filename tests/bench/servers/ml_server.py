"""MLServer with a runtime of its own kind ("Custom Inference Runtimes") over ONNX Runtime, which tokenizes.

Settings by its documentation ("Parallel Inference", "Adaptive Batching"): one worker process, and no adaptive batching, for
it makes every batch wait for company: with batches of 8 or 32 within 5 ms it answered fewer texts at every number of callers."""
import json
import pathlib

from contender import MODEL_NAME
from oip import OpenInference
from ports import free_port

SERVED = pathlib.Path(__file__).parent / "served"


class MlServer(OpenInference):
    name = "mlserver"
    exported = True
    needs = ("mlserver",)
    settings = "custom runtime on ONNX Runtime, one worker, no adaptive batching, Open Inference Protocol over HTTP"

    def prepare(self) -> None:
        model = {"name": MODEL_NAME, "implementation": "mlserver_runtime.Embedder",
                 "parameters": {"uri": str(self.place.exported / "fused")}}
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "model-settings.json").write_text(json.dumps(model), encoding="utf-8")

    def command(self, port: int) -> list:
        server = {"grpc_port": free_port(), "http_port": port, "metrics_port": free_port(), "host": "127.0.0.1", "debug": False,
                  "parallel_workers": 1}
        (self.folder / "settings.json").write_text(json.dumps(server), encoding="utf-8")
        return [self.place.python("mlserver").with_name("mlserver"), "start", self.folder]

    def environment(self) -> dict:
        return {"PYTHONPATH": str(SERVED), "SERVED_THREADS": str(self.place.threads)}

    def installed(self) -> list:
        return [self.place.site_packages("mlserver"), self.place.exported / "fused"]
