"""The kinds of checkpoints that are made for a run: the config.json and the tensors of each, as Hugging Face's
transformers names them."""
import abc
import pathlib

from cases import CLS, SEP, Model

POSITIONS = 2048  # more than BERT has, for the longest case


def _pair(name: str, shape: tuple):
    yield name + ".weight", shape
    yield name + ".bias", shape[:1]


class Kind(abc.ABC):
    """One "model_type"."""
    vocabulary: int
    norm_weight = 1  # that norm weights lie around

    @abc.abstractmethod
    def config(self, model: Model) -> dict:
        """The kind's own keys of config.json."""

    @abc.abstractmethod
    def tensors(self, model: Model):
        """Yields the name and the shape of each tensor."""

    def write_tokenizer(self, folder: pathlib.Path) -> None:
        """Writes a tokenizer if some converter insists on one; nothing is ever tokenized here."""

    def has_norm(self, name: str) -> bool:
        return name.endswith("norm.weight") or name.endswith("LayerNorm.weight")


class Bert(Kind):
    vocabulary = 30522
    token_types = 2
    epsilon = 1e-12

    @property
    def positions(self) -> int:
        return POSITIONS

    def config(self, model: Model) -> dict:
        return {"architectures": ["BertModel"], "hidden_size": model.hidden_size,
                "num_hidden_layers": model.layers, "num_attention_heads": model.heads,
                "intermediate_size": model.feed_forward_width, "hidden_act": "gelu", "layer_norm_eps": self.epsilon,
                "vocab_size": self.vocabulary, "max_position_embeddings": self.positions,
                "type_vocab_size": self.token_types, "position_embedding_type": "absolute", "pad_token_id": 0}

    def tensors(self, model: Model):
        e, f = model.hidden_size, model.feed_forward_width
        embeddings = "embeddings."
        yield embeddings + "word_embeddings.weight", (self.vocabulary, e)
        yield embeddings + "position_embeddings.weight", (self.positions, e)
        yield embeddings + "token_type_embeddings.weight", (self.token_types, e)
        yield from _pair(embeddings + "LayerNorm", (e,))
        for i in range(model.layers):
            layer = f"encoder.layer.{i}."
            for part in ("query", "key", "value"):
                yield from _pair(f"{layer}attention.self.{part}", (e, e))
            yield from _pair(layer + "attention.output.dense", (e, e))
            yield from _pair(layer + "attention.output.LayerNorm", (e,))
            yield from _pair(layer + "intermediate.dense", (f, e))
            yield from _pair(layer + "output.dense", (e, f))
            yield from _pair(layer + "output.LayerNorm", (e,))
        yield from _pair("pooler.dense", (e, e))

    def write_tokenizer(self, folder: pathlib.Path) -> None:
        words = [f"word{i}" for i in range(self.vocabulary)]
        for index, word in {0: "[PAD]", 100: "[UNK]", CLS: "[CLS]", SEP: "[SEP]", 103: "[MASK]"}.items():
            words[index] = word
        (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}', encoding="utf-8")


class XlmRoberta(Bert):
    """bge-m3's encoder."""
    vocabulary = 250002
    token_types = 1
    epsilon = 1e-5
    positions = 8194

    def config(self, model: Model) -> dict:
        return super().config(model) | {"architectures": ["XLMRobertaModel"], "pad_token_id": 1, "bos_token_id": 0,
                                        "eos_token_id": 2}


class Qwen3(Kind):
    vocabulary = 151669

    def config(self, model: Model) -> dict:
        return {"architectures": ["Qwen3Model"], "hidden_size": model.hidden_size,
                "num_hidden_layers": model.layers, "num_attention_heads": model.heads,
                "num_key_value_heads": model.key_value_heads, "head_dim": model.head_width,
                "intermediate_size": model.feed_forward_width, "hidden_act": "silu", "rms_norm_eps": 1e-6,
                "rope_theta": 1e6, "attention_bias": False, "use_sliding_window": False, "max_window_layers": 28,
                "sliding_window": None, "vocab_size": self.vocabulary, "max_position_embeddings": 32768,
                "tie_word_embeddings": True}

    def tensors(self, model: Model):
        e, f = model.hidden_size, model.feed_forward_width
        q, kv, head = model.query_width, model.key_value_width, model.head_width
        yield "embed_tokens.weight", (self.vocabulary, e)
        for i in range(model.layers):
            layer = f"layers.{i}."
            for name, shape in (("q_proj", (q, e)), ("k_proj", (kv, e)), ("v_proj", (kv, e)), ("o_proj", (e, q)),
                                ("q_norm", (head,)), ("k_norm", (head,))):
                yield f"{layer}self_attn.{name}.weight", shape
            for name, shape in (("gate_proj", (f, e)), ("up_proj", (f, e)), ("down_proj", (e, f))):
                yield f"{layer}mlp.{name}.weight", shape
            for name in self.norms:
                yield f"{layer}{name}.weight", (e,)
        yield "norm.weight", (e,)

    norms = ("input_layernorm", "post_attention_layernorm")


class Gemma3(Qwen3):
    """EmbeddingGemma's encoder."""
    vocabulary = 262144
    norm_weight = 0  # norms multiply by 1 + weight
    norms = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")

    def config(self, model: Model) -> dict:
        kinds = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(model.layers)]
        return {"architectures": ["Gemma3TextModel"], "hidden_size": model.hidden_size,
                "num_hidden_layers": model.layers, "num_attention_heads": model.heads,
                "num_key_value_heads": model.key_value_heads, "head_dim": model.head_width,
                "intermediate_size": model.feed_forward_width, "hidden_activation": "gelu_pytorch_tanh",
                "rms_norm_eps": 1e-6, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "attention_bias": False,
                "query_pre_attn_scalar": model.head_width, "sliding_window": 512, "layer_types": kinds,
                "use_bidirectional_attention": True, "vocab_size": self.vocabulary, "max_position_embeddings": 2048,
                "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 1, "tie_word_embeddings": True}


KINDS = {"bert": Bert(), "xlm-roberta": XlmRoberta(), "qwen3": Qwen3(), "gemma3_text": Gemma3()}
