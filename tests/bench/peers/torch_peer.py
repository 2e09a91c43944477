"""PyTorch: eager with SDPA, the nested-tensor fast path of nn.TransformerEncoder, compiled, and dynamic int8."""
import numpy as np
import torch

import checkpoint
import worker

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64, "int8": torch.float32}


class FastPath(torch.nn.Module):
    """The checkpoint's weights in nn.TransformerEncoder, which drops padding in its fused layers ("Better
    Transformer")."""

    def __init__(self, hidden_states: checkpoint.HiddenStates):
        super().__init__()
        model = hidden_states.model
        config = model.config
        if config.hidden_act != "gelu":
            raise worker.Refused(f"the fast path has no {config.hidden_act}")
        layer = torch.nn.TransformerEncoderLayer(
            config.hidden_size, config.num_attention_heads, config.intermediate_size, activation="gelu",
            layer_norm_eps=config.layer_norm_eps, batch_first=True)
        self.embeddings = model.embeddings
        self.encoder = torch.nn.TransformerEncoder(layer, config.num_hidden_layers, enable_nested_tensor=True)
        for target, source in zip(self.encoder.layers, model.encoder.layer):
            self._copy(target, source)
        self.to(next(model.parameters()).dtype).eval()

    @staticmethod
    def _copy(target, source):
        attention = source.attention.self
        parts = (attention.query, attention.key, attention.value)
        target.self_attn.in_proj_weight.data = torch.cat([part.weight.data for part in parts])
        target.self_attn.in_proj_bias.data = torch.cat([part.bias.data for part in parts])
        for ours, theirs in ((target.self_attn.out_proj, source.attention.output.dense),
                             (target.norm1, source.attention.output.LayerNorm),
                             (target.linear1, source.intermediate.dense), (target.linear2, source.output.dense),
                             (target.norm2, source.output.LayerNorm)):
            ours.weight.data, ours.bias.data = theirs.weight.data, theirs.bias.data

    def forward(self, input_ids, attention_mask):
        padding = None if bool(attention_mask.all()) else attention_mask == 0
        return self.encoder(self.embeddings(input_ids), src_key_padding_mask=padding)


class TorchPeer(worker.Peer):
    def __init__(self, options):
        super().__init__()
        torch.set_num_threads(options.threads)
        torch.set_grad_enabled(False)
        model = checkpoint.HiddenStates(options.model, DTYPES[options.dtype])
        if options.dtype == "int8":
            model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
        if options.mode == "nested":
            model = FastPath(model)
        if options.mode == "compiled":
            model = torch.compile(model, dynamic=True)
        self._model = model
        self._tensors = []

    def prepare(self, batches: list) -> None:
        super().prepare(batches)
        self._tensors = [(torch.from_numpy(batch.ids), torch.from_numpy(batch.mask)) for batch in self._batches]

    def run(self, batches: list) -> list:
        return [self._model(ids, mask) for ids, mask in self._tensors]

    def to_numpy(self, result) -> np.ndarray:
        return result.to(torch.float64).numpy()


if __name__ == "__main__":
    worker.serve(lambda: TorchPeer(worker.parse_options("--mode")))
