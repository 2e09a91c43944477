"""ModelTokenizer: the token ids of texts, as the model was trained to have them."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence, Tuple, Union

from .. import messages
from ..errors import FailedPrecondition, invalid

if TYPE_CHECKING:
    import tokenizers

# A text, or two that the model reads together, such as a query and a document.
Text = Union[str, Tuple[str, str]]
_SURROGATE = re.compile("[\ud800-\udfff]")


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


def check_text(field: str, text: str) -> None:
    """Refuses a text that no encoding of Unicode can write, so that no tokenizer takes it."""
    half = None if text.isascii() else _SURROGATE.search(text)
    if half:
        raise invalid(field, "a text of Unicode characters",
                      f"half a surrogate pair at character {half.start()}, {ascii(half[0])}; "
                      "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') mends or replaces it")


def check_texts(field: str, texts: Sequence[Text]) -> None:
    """Refuses what is neither a text nor a pair of texts."""
    for index, text in enumerate(texts):
        if isinstance(text, str):
            check_text(f"{field}[{index}]", text)
            continue
        if isinstance(text, (tuple, list)) and len(text) == 2 and all(isinstance(one, str) for one in text):
            for one in text:
                check_text(f"{field}[{index}]", one)
            continue
        raise invalid(f"{field}[{index}]", "a text, or a pair of texts", f"{type(text).__name__} {text!r:.60}")


class ModelTokenizer:
    """The tokenizer of one model. Threads may share it.

    found: what the server has answered of it. description: that of the model.
    """

    def __init__(self, found: messages.GetTokenizerResponse, description: messages.GetModelResponse) -> None:
        self._found = found
        self._name = description.name
        self._with_types = description.embeddings.token_types > 1
        self._by_truncation: Dict[Optional[str], tokenizers.Tokenizer] = {}

    @property
    def max_length(self) -> int:
        """Tokens of the longest text, special ones included; 0: any."""
        return int(self._found.max_sequence_length)

    def loaded(self, truncation: Optional[str]) -> bool:
        """Whether texts have been tokenized with this truncation, so that the tokenizer need not be made first."""
        return truncation in self._by_truncation

    def prompt(self, prompt: Optional[str], name: Optional[str]) -> str:
        """Returns what goes before texts: this prompt, the model's one of this name, or its default one."""
        if prompt is not None:
            if name is not None:
                raise invalid("prompt_name", "none beside prompt", name)
            check_text("prompt", prompt)
            return prompt
        if name is None:
            name = self._found.default_prompt
            return self._found.prompts[name] if name else ""
        if name not in self._found.prompts:
            names = ", ".join(sorted(self._found.prompts)) or "none, as the model has no prompts"
            raise invalid("prompt_name", f"one of {names}" if self._found.prompts else names, f'"{name}"')
        return self._found.prompts[name]

    def prompt_tokens(self, prompt: str) -> int:
        """Returns how many of a text's first tokens are those of a prompt before it, and of the special tokens before that."""
        made = self._tokenizer("right").encode(prompt)
        # As sentence-transformers counts them: without a special token behind the prompt.
        ends = bool(made.ids) and (made.special_tokens_mask[-1] == 1 or made.ids[-1] in self._found.special_ids.values())
        return len(made.ids) - ends

    def tokens(self, text: Text, truncation: Optional[str] = "right") -> Tokens:
        """Returns the tokens of a text. truncation: the side on which a long one is cut; None: it is not."""
        made = self._tokenizer(truncation).encode_batch([text])[0]
        return Tokens(made.ids, made.tokens, made.offsets, made.type_ids)

    def ids(self, texts: Sequence[Text], truncation: Optional[str] = "right") -> List[Tuple[List[int], List[int]]]:
        """Returns the ids of each text and, for models that have such and if there are pairs, the types of its tokens."""
        tokenizer = self._tokenizer(truncation)
        # Without offsets; it came with tokenizers 0.20.
        encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
        pairs = self._with_types and any(not isinstance(text, str) for text in texts)
        return [(made.ids, made.type_ids if pairs else []) for made in encode(list(texts))]

    def check_length(self, field: str, tokens: int) -> None:
        """Refuses a text that has more tokens than the model was trained to have."""
        if self.max_length and tokens > self.max_length:
            raise invalid(field, f"at most {self.max_length} tokens", tokens)

    def _tokenizer(self, truncation: Optional[str]) -> tokenizers.Tokenizer:
        made = self._by_truncation.get(truncation)
        if made is not None:
            return made
        if truncation not in ("right", "left", None):
            raise invalid("truncation", '"right", "left" or None', repr(truncation))
        try:
            import tokenizers
        except ImportError as error:
            raise ImportError("texts need the package tokenizers: pip install 'attendant-client[text]'") from error
        try:
            made = tokenizers.Tokenizer.from_str(self._found.tokenizer_json.decode())
        except Exception as error:  # the package has none of its own
            raise FailedPrecondition(f"model {self._name} takes no texts: its tokenizer.json cannot be read: {error}") from error
        if self._found.lower_case:
            # Beside what the file says, as sentence-transformers does.
            lower = [tokenizers.normalizers.Lowercase()]
            made.normalizer = tokenizers.normalizers.Sequence(lower + ([made.normalizer] if made.normalizer else []))
        # The file may say how somebody once padded and cut.
        made.no_padding()
        if truncation is None or not self.max_length:
            made.no_truncation()
        else:
            made.enable_truncation(self.max_length, strategy="longest_first", direction=truncation)
        self._by_truncation[truncation] = made
        return made
