"""llama.cpp, as PyPI's llama-cpp-python builds it, with the checkpoint written as a GGUF file without a tokenizer."""
import ctypes
import json
import pathlib

import gguf
import llama_cpp
import numpy as np
import safetensors

import checkpoint
import worker

_ARCHITECTURES = {"qwen3": gguf.MODEL_ARCH.QWEN3, "gemma3_text": gguf.MODEL_ARCH.GEMMA_EMBEDDING,
                  "xlm-roberta": gguf.MODEL_ARCH.BERT}
_WORDS = {"qwen3": "embed_tokens.weight"}  # what the peer itself looks up, see LlamaCppPeer
_F32 = 0  # of GGML's types


def _write_shape(writer: gguf.GGUFWriter, config: dict) -> None:
    heads = config["num_attention_heads"]
    width = config.get("head_dim", config["hidden_size"] // heads)
    writer.add_file_type(_F32)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads", heads))
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_causal_attention(config["model_type"] == "qwen3")
    writer.add_pooling_type(gguf.PoolingType.NONE)
    if "rms_norm_eps" in config:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_theta"])
    else:
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_token_type_count(config["type_vocab_size"])
    if "rope_local_base_freq" in config:
        writer.add_sliding_window(config["sliding_window"])
        writer.add_rope_freq_base_swa(config["rope_local_base_freq"])


def _adapted(name: str, values: np.ndarray, config: dict) -> np.ndarray:
    """The tensor as llama.cpp expects it."""
    if config["model_type"] == "gemma3_text" and name.endswith("norm.weight"):
        return values + 1
    if config["model_type"] == "xlm-roberta" and name.endswith("position_embeddings.weight"):
        return values[config["pad_token_id"] + 1:]  # positions count from 0
    return values


def _convert(folder: pathlib.Path, target: pathlib.Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = config["model_type"]
    architecture, words = _ARCHITECTURES[kind], _WORDS.get(kind)
    writer = gguf.GGUFWriter(target / "model.gguf", gguf.MODEL_ARCH_NAMES[architecture])
    if kind == "xlm-roberta":
        config["max_position_embeddings"] -= config["pad_token_id"] + 1
    _write_shape(writer, config)
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(1 if words else config["vocab_size"])
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    prefix = "" if kind == "xlm-roberta" else "model."
    with safetensors.safe_open(folder / "model.safetensors", "numpy") as tensors:
        for name in tensors.keys():
            if name.startswith("pooler."):
                continue
            values = tensors.get_tensor(name)
            if name == words:
                values = values[:1]
            writer.add_tensor(names.get_name(prefix + name, (".weight", ".bias")), _adapted(name, values, config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class _Call:
    """Sequences that llama.cpp computes together."""

    def __init__(self, sequences: list, table: np.ndarray | None):
        ids = np.array([token for sequence in sequences for token in sequence], dtype=np.int32)
        self.tokens = len(ids)
        self.table, self.ids = table, ids
        self.batch = llama_cpp.llama_batch_init(self.tokens, 0 if table is None else table.shape[1], 1)
        self.batch.n_tokens = self.tokens
        if table is None:
            ctypes.memmove(self.batch.token, ids.ctypes.data, ids.nbytes)
        else:
            self._rows = np.ctypeslib.as_array(self.batch.embd, (self.tokens, table.shape[1]))
        at = 0
        for number, sequence in enumerate(sequences):
            for position in range(len(sequence)):
                self.batch.pos[at] = position
                self.batch.n_seq_id[at] = 1
                self.batch.seq_id[at][0] = number
                self.batch.logits[at] = 1
                at += 1

    def embed(self) -> None:
        if self.table is not None:
            self._rows[:] = self.table[self.ids]


class LlamaCppPeer(worker.Peer):
    """For Qwen3, llama.cpp would score the whole vocabulary at each token after the layers. So its file has a
    vocabulary of one word, and the peer looks up the rows of the true table, which it gives to llama.cpp."""

    def __init__(self, options):
        super().__init__()
        config = json.loads((options.model / "config.json").read_text(encoding="utf-8"))
        kind = config["model_type"]
        if kind not in _ARCHITECTURES:
            raise worker.Refused(f"its file would have to be written as that of a {kind}")
        file = checkpoint.converted(options.model, "llama.cpp", lambda target: _convert(options.model, target))
        llama_cpp.llama_backend_init()
        parameters = llama_cpp.llama_model_default_params()
        self._model = llama_cpp.llama_model_load_from_file(str(file / "model.gguf").encode(), parameters)
        if not self._model:
            raise worker.Refused("llama.cpp does not load the file")
        self._width, self._causal = config["hidden_size"], kind == "qwen3"
        self._table = None
        if kind in _WORDS:
            with safetensors.safe_open(options.model / "model.safetensors", "numpy") as tensors:
                self._table = tensors.get_tensor(_WORDS[kind])
        self._threads = options.threads
        self._context, self._calls = None, []

    def prepare(self, batches: list) -> None:
        super().prepare(batches)
        # Without a cache of keys and values, a call would compare all tokens with all.
        self._calls = [[_Call(cut, self._table) for cut in ([batch] if self._causal else [[one] for one in batch])]
                       for batch in batches]
        most_tokens = max(call.tokens for calls in self._calls for call in calls)
        longest = max(len(sequence) for batch in batches for sequence in batch)
        sequences = max(len(batch) for batch in batches) if self._causal else 1
        if self._context:
            llama_cpp.llama_free(self._context)
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = sequences * longest
        parameters.n_batch = parameters.n_ubatch = most_tokens
        parameters.n_seq_max = sequences
        parameters.n_threads = parameters.n_threads_batch = self._threads
        parameters.pooling_type = 0
        parameters.type_k = parameters.type_v = _F32
        parameters.embeddings = True
        parameters.kv_unified = False
        parameters.flash_attn_type = 0  # off: it rounds to float16
        self._context = llama_cpp.llama_init_from_model(self._model, parameters)
        if not self._context:
            raise worker.Refused("llama.cpp makes no context")

    def run(self, batches: list) -> list:
        return [np.concatenate([self._compute(call) for call in calls]) for calls in self._calls]

    def _compute(self, call: _Call) -> np.ndarray:
        """Returns [T, E]."""
        call.embed()
        if self._causal:
            llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), False)
            code = llama_cpp.llama_decode(self._context, call.batch)
        else:
            code = llama_cpp.llama_encode(self._context, call.batch)
        if code:
            raise RuntimeError(f"llama.cpp: code {code}")
        found = llama_cpp.llama_get_embeddings(self._context)
        return np.ctypeslib.as_array(found, (call.tokens, self._width)).copy()

    def to_numpy(self, result) -> np.ndarray:
        raise NotImplementedError("its results are not padded")

    def save_prepared(self, file: pathlib.Path) -> None:
        with open(file, "wb") as target:
            for rows in self.run(self._batches):
                target.write(rows.astype(np.float32).tobytes())


if __name__ == "__main__":
    worker.serve(lambda: LlamaCppPeer(worker.parse_options()))
