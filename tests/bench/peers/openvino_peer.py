"""OpenVINO with one or more streams, and int8 by NNCF's post-training quantisation for transformers."""
import pathlib

import numpy as np
import openvino

import checkpoint
import worker

CALIBRATION_SENTENCES = 100


def _convert(folder: pathlib.Path, target: pathlib.Path) -> None:
    model = openvino.convert_model(checkpoint.Traceable(folder), example_input=checkpoint.example())
    for tensor, name in zip(model.inputs, ("input_ids", "attention_mask")):
        tensor.tensor.set_names({name})
    model.reshape({0: [-1, -1], 1: [-1, -1]})
    openvino.save_model(model, target / "model.xml", compress_to_fp16=False)


def _quantize(folder: pathlib.Path, target: pathlib.Path) -> None:
    import nncf  # slow to import, and only needed here

    def inputs(ids):
        ids = np.array([ids], dtype=np.int64)
        return {"input_ids": ids, "attention_mask": np.ones_like(ids)}

    model = openvino.Core().read_model(_float_model(folder))
    dataset = nncf.Dataset(checkpoint.calibration_sentences(CALIBRATION_SENTENCES), inputs)
    quantized = nncf.quantize(model, dataset, model_type=nncf.ModelType.TRANSFORMER,
                              subset_size=CALIBRATION_SENTENCES)
    openvino.save_model(quantized, target / "model.xml", compress_to_fp16=False)


def _float_model(folder: pathlib.Path) -> pathlib.Path:
    return checkpoint.converted(folder, "openvino", lambda target: _convert(folder, target)) / "model.xml"


def _int8_model(folder: pathlib.Path) -> pathlib.Path:
    return checkpoint.converted(folder, "openvino-int8", lambda target: _quantize(folder, target)) / "model.xml"


class OpenVinoPeer(worker.Peer):
    def __init__(self, options):
        super().__init__()
        settings = {"INFERENCE_NUM_THREADS": options.threads, "NUM_STREAMS": options.streams,
                    "PERFORMANCE_HINT": "LATENCY" if options.streams == 1 else "THROUGHPUT"}
        if options.dtype != "int8":  # int8 keeps the type that the plugin prefers for the rest
            settings["INFERENCE_PRECISION_HINT"] = options.dtype
        model = _int8_model(options.model) if options.dtype == "int8" else _float_model(options.model)
        self._compiled = openvino.Core().compile_model(model, "CPU", settings)
        self._requests = []

    def prepare(self, batches: list) -> None:
        super().prepare(batches)
        self._requests = [self._compiled.create_infer_request() for _ in range(self._streams())]

    def _streams(self) -> int:
        return max(1, int(self._compiled.get_property("NUM_STREAMS")))

    def run(self, batches: list) -> list:
        results = [None] * len(batches)
        if len(self._requests) == 1:
            for index, batch in enumerate(batches):
                results[index] = self._requests[0].infer([batch.ids, batch.mask], share_inputs=True)[0]
            return results
        queue = openvino.AsyncInferQueue(self._compiled, len(self._requests))

        def keep(request, index):
            results[index] = request.get_output_tensor(0).data.copy()

        queue.set_callback(keep)
        for index, batch in enumerate(batches):
            queue.start_async([batch.ids, batch.mask], index, share_inputs=True)
        queue.wait_all()
        return results

    def to_numpy(self, result) -> np.ndarray:
        return np.array(result)


if __name__ == "__main__":
    worker.serve(lambda: OpenVinoPeer(worker.parse_options()))
