"""ONNX Runtime with the fusions of its transformer optimiser, and int8 by its dynamic quantisation."""
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

import checkpoint
import worker

# "model_type" -> the fusions that the optimiser has for it. Those of Qwen3 find the norms of Gemma 3 too.
_FUSIONS = {"bert": "bert", "xlm-roberta": "bert", "qwen3": "qwen3", "gemma3_text": "qwen3"}


def export_plain(folder: pathlib.Path, file: pathlib.Path) -> None:
    model = checkpoint.Traceable(folder, attention="eager")  # the pattern that the optimiser knows
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(model, checkpoint.example(), str(file), input_names=["input_ids", "attention_mask"],
                      output_names=["last_hidden_state"], opset_version=17, dynamo=False,
                      dynamic_axes={"input_ids": axes, "attention_mask": axes, "last_hidden_state": axes})


def fuse(folder: pathlib.Path, plain: pathlib.Path, file: pathlib.Path) -> None:
    config = transformers.AutoConfig.from_pretrained(folder)
    fusions, large = _FUSIONS[config.model_type], config.model_type != "bert"
    fused = optimizer.optimize_model(str(plain), model_type=fusions, num_heads=config.num_attention_heads,
                                     hidden_size=config.hidden_size, opt_level=0 if large else None,
                                     optimization_options=FusionOptions(fusions))
    # Large weights go into a file of their own, because ONNX's format ends at 2 GiB.
    fused.save_model_to_file(str(file), use_external_data_format=large)
    statistics = fused.get_fused_operator_statistics()
    if fusions == "bert":
        found, wanted = statistics.get("Attention", 0) + statistics.get("MultiHeadAttention", 0), 1
    else:  # it has no attention that takes masks
        found = sum(statistics.get(name, 0) for name in ("SimplifiedLayerNormalization",
                                                         "SkipSimplifiedLayerNormalization"))
        wanted = 4
    if found < wanted * config.num_hidden_layers:
        raise worker.Refused(f"the optimiser did not find the parts of every layer: {statistics}")


def _export(folder: pathlib.Path, target: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        plain = pathlib.Path(scratch) / "plain.onnx"
        checkpoint.call_apart(export_plain, folder, plain)
        checkpoint.call_apart(fuse, folder, plain, target / "model.onnx")


def _float_model(folder: pathlib.Path) -> pathlib.Path:
    return checkpoint.converted(folder, "onnxruntime", lambda target: _export(folder, target)) / "model.onnx"


def _int8_model(folder: pathlib.Path) -> pathlib.Path:
    def quantize(target):
        # The fused operators are not part of ONNX, so its shape inference ends at the first of them.
        quantize_dynamic(_float_model(folder), target / "model.onnx", weight_type=QuantType.QInt8, per_channel=True,
                         extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})

    return checkpoint.converted(folder, "onnxruntime-int8", quantize) / "model.onnx"


class OnnxRuntimePeer(worker.Peer):
    def __init__(self, options):
        super().__init__()
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        model = _int8_model(options.model) if options.dtype == "int8" else _float_model(options.model)
        self._session = onnxruntime.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])
        self._names = [value.name for value in self._session.get_inputs()]

    def run(self, batches: list) -> list:
        return [self._session.run(None, dict(zip(self._names, (batch.ids, batch.mask))))[0] for batch in batches]

    def to_numpy(self, result) -> np.ndarray:
        return result


if __name__ == "__main__":
    worker.serve(lambda: OnnxRuntimePeer(worker.parse_options()))
