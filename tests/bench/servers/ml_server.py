"""MLServer with a runtime of its own kind ("Custom Inference Runtimes") over ONNX Runtime, which tokenizes.

Settings by its documentation ("Adaptive Batching", "Parallel Inference"): batches of up to 32 that wait for 5 ms at most,
one worker process, gRPC. With longer waits a lone caller waits in vain; without any it forms no batches."""
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
    settings = "custom runtime on ONNX Runtime, adaptive batches of 32 within 5 ms, one worker, gRPC"

    def prepare(self) -> None:
        model = {"name": MODEL_NAME, "implementation": "mlserver_runtime.Embedder", "max_batch_size": 32, "max_batch_time": 0.005,
                 "parameters": {"uri": str(self.place.exported / "fused")}}
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "model-settings.json").write_text(json.dumps(model), encoding="utf-8")

    def command(self, port: int) -> list:
        server = {"grpc_port": port, "http_port": free_port(), "metrics_port": free_port(), "host": "127.0.0.1", "debug": False,
                  "parallel_workers": 1}
        (self.folder / "settings.json").write_text(json.dumps(server), encoding="utf-8")
        return [self.place.python("mlserver").with_name("mlserver"), "start", self.folder]

    def environment(self) -> dict:
        return {"PYTHONPATH": str(SERVED), "SERVED_THREADS": str(self.place.threads)}

    def installed(self) -> list:
        return [self.place.site_packages("mlserver"), self.place.exported / "fused"]
