"""Writes arrays as JSON."""
from __future__ import annotations

import base64
import json
from typing import Any, Iterable, List, Mapping

import numpy as np
import numpy.typing as npt

from .refusals import FAILED, Refusal

Floats = npt.NDArray[Any]


def check_finite(array: Floats) -> None:
    """Refuses what JSON has no numbers for."""
    if not np.isfinite(array).all():
        raise Refusal(FAILED, "the model's answer has numbers that are not finite, which JSON cannot hold")


def row_json(row: Floats) -> str:
    """Returns a row [E] of float32 as a JSON list. Nine digits give the same float32 when they are read."""
    return "[" + ",".join(["%.9g"] * len(row)) % tuple(row.tolist()) + "]"


def row_base64(row: Floats) -> str:
    """Returns a row [E] as a JSON text: its little-endian float32 numbers in base64."""
    return '"' + base64.b64encode(row.astype("<f4").tobytes()).decode() + '"'


def list_json(elements: Iterable[str]) -> str:
    """Returns a JSON list of elements that are JSON."""
    return "[" + ",".join(elements) + "]"


def rows_json(rows: Floats) -> str:
    """Returns rows [n, E] of float32 as a JSON list of lists."""
    return list_json(map(row_json, rows))


def object_json(members: Mapping[str, Any], **made: str) -> bytes:
    """Returns a JSON object of members, and of others that are made JSON already."""
    parts: List[str] = [f"{json.dumps(name)}:{json.dumps(value, ensure_ascii=False)}" for name, value in members.items()]
    parts += [f'"{name}":{value}' for name, value in made.items()]
    return ("{" + ",".join(parts) + "}").encode()
