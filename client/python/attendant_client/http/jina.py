"""Rerank as Jina and Cohere have it: /v1/rerank and /v2/rerank."""
from __future__ import annotations

import uuid
from typing import Any, Dict

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from . import scores
from .exchange import Call, endpoint
from .models import RERANK


async def rerank(call: Call) -> Response:
    """The documents by their relevance to the query, best first. The answer has the members of both APIs."""
    members = call.members
    query, documents = members.text("query"), members.documents("documents")
    wish = scores.Wish("documents", call.front.settings.truncation(), top_n=members.count("top_n"))
    with_documents = members.flag("return_documents", False)
    served = await call.front.models.choose(members.name("model"), RERANK)
    ranked, tokens = await scores.rerank(call, served, query, documents, wish)
    results = []
    for one in ranked:
        result: Dict[str, Any] = {"index": one.index, "relevance_score": one.score}
        if with_documents:
            result["document"] = {"text": one.text}
        results.append(result)
    return JSONResponse({
        "id": str(uuid.uuid4()), "object": "list", "model": served.name, "results": results,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}, "tokens": {"input_tokens": tokens}}})


ROUTES = [Route(path, endpoint(rerank), methods=["POST"]) for path in ("/v1/rerank", "/v2/rerank")]
