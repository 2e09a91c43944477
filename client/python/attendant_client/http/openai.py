"""OpenAI's API: /v1/embeddings and /v1/models."""
from __future__ import annotations

from typing import Any, Dict

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from . import numbers
from .exchange import Call, endpoint
from .models import EMBED, Served
from .vectors import Wish, embed


async def embeddings(call: Call) -> Response:
    """One vector of length 1 for each input, as float32 numbers or as base64 of their bytes."""
    members = call.members
    wish = Wish("input", members.inputs("input"), dimensions=members.count("dimensions"),
                truncation=members.truncation(call.front.settings.truncate))
    write = numbers.row_base64 if members.choice("encoding_format", ("float", "base64")) == "base64" else numbers.row_json
    served = await call.front.models.choose(members.name("model"), EMBED)
    rows, tokens = await embed(call, served, wish)
    data = numbers.list_json(
        f'{{"object":"embedding","index":{index},"embedding":{write(row)}}}' for index, row in enumerate(rows))
    head = {"object": "list", "model": served.name, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    return Response(numbers.object_json(head, data=data), media_type="application/json")


def _describe(served: Served) -> Dict[str, Any]:
    # A model has no time of its own here; OpenAI's clients want a number.
    return {"id": served.name, "object": "model", "created": 0, "owned_by": "attendant"}


async def list_models(call: Call) -> Response:
    return JSONResponse({"object": "list", "data": [_describe(served) for served in await call.front.models.all()]})


async def show_model(call: Call) -> Response:
    return JSONResponse(_describe(await call.front.models.find(call.model)))


ROUTES = [
    Route("/v1/embeddings", endpoint(embeddings), methods=["POST"]),
    Route("/v1/models", endpoint(list_models), methods=["GET"]),
    Route("/v1/models/{model:path}", endpoint(show_model), methods=["GET"]),
]
