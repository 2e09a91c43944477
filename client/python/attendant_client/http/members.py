"""Reads the members of a request's JSON object. What does not fit is refused, by the member's name."""
from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple, Union

from .refusals import EMPTY, INVALID, MALFORMED, OVERSIZED, UNTOKENIZABLE, Refusal, invalid
from .settings import Limits

# A text, or the ids of its tokens.
Input = Union[str, List[int]]
MOST_SHOWN = 40
MOST_ID = (1 << 31) - 1


def describe(value: Any) -> str:
    """Returns what a JSON value is, in a few words."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return json.dumps(value if len(value) <= MOST_SHOWN else value[:MOST_SHOWN] + "…", ensure_ascii=False)
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    text = json.dumps(value)
    return text if len(text) <= MOST_SHOWN else "a number of many digits"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def parse_object(body: bytes) -> Dict[str, Any]:
    """Returns the JSON object in a body."""
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except RecursionError:
        raise Refusal(MALFORMED, "the body: expected a JSON object; got one that is nested too deeply") from None
    except ValueError as error:  # also of bytes that are no UTF-8
        raise Refusal(MALFORMED, f"the body: expected a JSON object; got what cannot be read as JSON ({error})") from None
    if not isinstance(value, dict):
        raise Refusal(INVALID, f"the body: expected a JSON object; got {describe(value)}")
    return value


@dataclass(frozen=True)
class Members:
    """The members of a JSON object. null stands for a member that is not there."""

    values: Dict[str, Any]
    limits: Limits

    def given(self, name: str) -> Any:
        if self.values.get(name) is None:
            raise invalid(name, "a value", "null" if name in self.values else "none")
        return self.values[name]

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise invalid(name, "true or false", describe(value))
        return default if value is None else value

    def count(self, name: str) -> Optional[int]:
        """Returns an integer from 1; None: not given."""
        value = self.values.get(name)
        if value is not None and not (is_integer(value) and value >= 1):
            raise invalid(name, "an integer from 1", describe(value))
        return None if value is None else int(value)

    def truncation(self, default: bool) -> Optional[str]:
        """Returns the side on which texts that are too long are cut, "right" or "left"; None: they are refused."""
        side = self.choice("truncation_direction", ("right", "left"))
        return side if self.flag("truncate", default) else None

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Returns one of the choices, of which the first is the default."""
        value = self.values.get(name) or choices[0]
        if not isinstance(value, str) or value.lower() not in choices:
            raise invalid(name, " or ".join(f'"{choice}"' for choice in choices), describe(value))
        return value.lower()

    def object(self, name: str) -> Optional[Members]:
        """Returns the members of an object; None: not given."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            raise invalid(name, "an object", describe(value))
        return None if value is None else Members(value, self.limits)

    def name(self, name: str) -> str:
        """Returns a text that names something; empty: not given."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise invalid(name, "a text", describe(value))
        return value or ""

    def text(self, name: str) -> str:
        return self.check_text(name, self.given(name))

    def texts(self, name: str) -> List[str]:
        values = self._check_list(name, self.given(name), "a list of texts")
        return [self.check_text(f"{name}[{index}]", value) for index, value in enumerate(values)]

    def documents(self, name: str) -> List[str]:
        """Returns the texts of a list whose elements are texts, or objects with the member `text`."""
        values = self._check_list(name, self.given(name), 'a list of texts, or of objects with "text"')
        found = []
        for index, value in enumerate(values):
            is_object = isinstance(value, dict)
            field = f"{name}[{index}].text" if is_object else f"{name}[{index}]"
            found.append(self.check_text(field, value.get("text") if is_object else value))
        return found

    def inputs(self, name: str) -> List[Input]:
        """Returns the texts of a text, a list of token ids, or a list with any of these for each element."""
        value = self.given(name)
        if isinstance(value, str):
            return [self.check_text(name, value)]
        values = self._check_list(name, value, "a text, a list of texts, or token ids")
        if is_integer(values[0]):
            return [self._check_ids(name, values)]
        return [self._check_ids(f"{name}[{index}]", one) if isinstance(one, list) else self.check_text(f"{name}[{index}]", one)
                for index, one in enumerate(values)]

    def pairs(self, name: str) -> Tuple[List[Union[str, Tuple[str, str]]], bool]:
        """Returns texts, or pairs of texts, and whether it is a batch: a text, [a, b], or a list of [a] and [a, b]."""
        value = self.given(name)
        if isinstance(value, str):
            return [self.check_text(name, value)], False
        values = self._check_list(name, value, "a text, a pair of texts, or a list with a list of one or two texts for each")
        if isinstance(values[0], str):
            return [self._check_pair(name, values)], False
        return [self._check_pair(f"{name}[{index}]", one) for index, one in enumerate(values)], True

    def check_text(self, field: str, value: Any) -> str:
        if not isinstance(value, str):
            raise invalid(field, "a text", describe(value))
        if len(value) > self.limits.text_characters:
            raise invalid(field, f"at most {self.limits.text_characters} characters", len(value), OVERSIZED)
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise invalid(field, "a text of Unicode characters", f"half a surrogate pair at character {error.start}",
                          UNTOKENIZABLE) from None
        return value

    def _check_list(self, field: str, value: Any, expected: str) -> List[Any]:
        if not isinstance(value, list):
            raise invalid(field, expected, describe(value))
        if not value:
            raise invalid(field, expected, "an empty list", EMPTY)
        if len(value) > self.limits.texts and not is_integer(value[0]):
            raise invalid(field, f"at most {self.limits.texts} elements", len(value), OVERSIZED)
        return value

    def _check_pair(self, field: str, value: Any) -> Union[str, Tuple[str, str]]:
        if not isinstance(value, list) or not 1 <= len(value) <= 2:
            raise invalid(field, "a list of one or two texts", describe(value))
        texts = [self.check_text(f"{field}[{index}]", text) for index, text in enumerate(value)]
        return (texts[0], texts[1]) if len(texts) == 2 else texts[0]

    def _check_ids(self, field: str, values: List[Any]) -> List[int]:
        if not values:
            raise invalid(field, "at least one token id", "an empty list", EMPTY)
        if len(values) > self.limits.text_characters:
            raise invalid(field, f"at most {self.limits.text_characters} token ids", len(values), OVERSIZED)
        for index, value in enumerate(values):
            if not is_integer(value) or not 0 <= value <= MOST_ID:
                raise invalid(f"{field}[{index}]", "a token id, which is an integer from 0", describe(value), INVALID)
        return values


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
