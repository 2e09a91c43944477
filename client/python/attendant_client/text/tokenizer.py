"""The tokens of texts, and ModelTokenizer, for models whose tokenizer the server does not support."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Sequence, Tuple

from .. import messages
from ..errors import FailedPrecondition, invalid, refused
from ..texts import Text, check_text

if TYPE_CHECKING:
    import tokenizers


@dataclass(frozen=True)
class Tokens:
    """The tokens of one text, special ones included.

    ids: what the model takes. text: how each is written in the vocabulary. offsets: where each begins and ends among the
    characters of the text. types: 1 for tokens of the second text of two.
    """

    ids: List[int]
    text: List[str]
    offsets: List[Tuple[int, int]]
    types: List[int]

    @staticmethod
    def of(found: messages.TextTokens) -> Tokens:
        return Tokens(list(found.ids), list(found.tokens), list(zip(found.begins, found.ends)), list(found.token_type_ids))


def check_length(field: str, tokens: int, most: int) -> None:
    """Refuses a text that has more tokens than the model was trained to have. most: 0: any number."""
    if most and tokens > most:
        raise invalid(field, f"at most {most} tokens", tokens)


class ModelTokenizer:
    """The tokenizer of one model. Threads may share it.

    found: its files from the server. description: the model's description.
    """

    def __init__(self, found: messages.GetTokenizerResponse, description: messages.GetModelResponse) -> None:
        self._found = found
        self._name = description.name
        self._why = description.why_no_texts or "which is older than texts"
        self._with_types = description.embeddings.token_types > 1
        self._padding = description.embeddings.text_padding
        self._by_truncation: Dict[Optional[str], tokenizers.Tokenizer] = {}

    @property
    def max_length(self) -> int:
        """Tokens of the longest text, special ones included; 0: any."""
        return int(self._found.max_sequence_length)

    @property
    def labels(self) -> Sequence[str]:
        return self._found.labels

    def prompt(self, prompt: Optional[str], name: Optional[str]) -> str:
        """Returns what goes before texts: this prompt, the model's one of this name, or its default one."""
        if prompt is not None:
            if name is not None:
                raise refused("prompt_name", "cannot be combined with prompt")
            check_text("prompt", prompt)
            return prompt
        if name is None:
            name = self._found.default_prompt
            return self._found.prompts[name] if name else ""
        if name not in self._found.prompts:
            if not self._found.prompts:
                raise refused("prompt_name", f'not supported by model "{self._name}": it has no prompts')
            raise invalid("prompt_name", f"one of {', '.join(sorted(self._found.prompts))}", f'"{name}"')
        return self._found.prompts[name]

    def prompt_tokens(self, prompt: str) -> int:
        """Returns the number of leading tokens that belong to the prompt and the special tokens before it."""
        made = self._tokenizer("right").encode(prompt)
        # As in sentence-transformers: without a special token after the prompt.
        ends = bool(made.ids) and (made.special_tokens_mask[-1] == 1 or made.ids[-1] in self._found.special_ids.values())
        return len(made.ids) - ends

    def tokens(self, texts: Sequence[Text], truncation: Optional[str]) -> Iterator[messages.TextTokens]:
        """Yields the tokens of each text. truncation: the side on which a long one is cut; None: it is not."""
        for made in self._tokenizer(truncation).encode_batch(list(texts)):
            begins, ends = zip(*made.offsets) if made.offsets else ((), ())
            yield messages.TextTokens(ids=made.ids, tokens=made.tokens, token_type_ids=made.type_ids, begins=begins, ends=ends)

    def ids(self, texts: Sequence[Text], truncation: Optional[str]) -> List[Tuple[List[int], List[int]]]:
        """Returns the ids of each text and, for models that have such and if there are pairs, the types of its tokens."""
        tokenizer = self._tokenizer(truncation)
        # Without offsets; available since tokenizers 0.20.
        encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
        pairs = self._with_types and any(not isinstance(text, str) for text in texts)
        return [(made.ids, made.type_ids if pairs else []) for made in encode(list(texts))]

    def _tokenizer(self, truncation: Optional[str]) -> tokenizers.Tokenizer:
        made = self._by_truncation.get(truncation)
        if made is not None:
            return made
        if truncation not in ("right", "left", None):
            raise invalid("truncation", '"right", "left", "model" or None', repr(truncation))
        try:
            import tokenizers
        except ImportError as error:
            raise ImportError(f"model {self._name} does not accept texts in its server ({self._why}); to tokenize them here, install the "
                              "package tokenizers: pip install 'attendant-client[tokenizers]'") from error
        try:
            made = tokenizers.Tokenizer.from_str(self._found.tokenizer_json.decode())
        except Exception as error:  # the package has none of its own
            raise FailedPrecondition(f"model {self._name} does not accept texts: its tokenizer.json cannot be read: {error}") from error
        if self._found.lower_case:
            # In addition to the file's settings, as in sentence-transformers.
            lower = [tokenizers.normalizers.Lowercase()]
            made.normalizer = tokenizers.normalizers.Sequence(lower + ([made.normalizer] if made.normalizer else []))
        # The file may contain settings of padding and truncation.
        made.no_padding()
        if self._padding.length:
            side = "left" if self._padding.is_left else "right"
            made.enable_padding(direction=side, pad_id=self._padding.id, length=self._padding.length)
        if truncation is None or not self.max_length:
            made.no_truncation()
        else:
            made.enable_truncation(self.max_length, strategy="longest_first", direction=truncation)
        self._by_truncation[truncation] = made
        return made
