"""export_onnx.py CHECKPOINT TARGET: makes the ONNX files of a checkpoint, in the environment `floor`.

TARGET/checkpoint is a copy of the checkpoint with a plain model.onnx, for servers that optimise it themselves. TARGET/fused has
the model after the transformer optimiser of ONNX Runtime, as tests/bench/peers has it, beside the tokenizer."""
import pathlib
import shutil
import sys

import onnxruntime_peer


def main() -> None:
    checkpoint, target = map(pathlib.Path, sys.argv[1:])
    unfinished = target.with_name(f"unfinished-{target.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    copy, fused = unfinished / "checkpoint", unfinished / "fused"
    shutil.copytree(checkpoint, copy, ignore=shutil.ignore_patterns("converted"))
    for folder in (copy / "onnx", fused):
        folder.mkdir()
    onnxruntime_peer.export_plain(checkpoint, copy / "onnx" / "model.onnx")
    onnxruntime_peer.fuse(checkpoint, copy / "onnx" / "model.onnx", fused / "model.onnx")
    shutil.copy(checkpoint / "tokenizer.json", fused)
    unfinished.rename(target)


if __name__ == "__main__":
    main()
