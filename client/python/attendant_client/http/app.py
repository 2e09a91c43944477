"""The application: its routes, and the connection that lives as long as it."""
from __future__ import annotations

import contextlib
from typing import AsyncIterator, Optional

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from . import jina, openai, tei
from .exchange import Front
from .refusals import INVALID, NO_METHOD, NO_ROUTE, Refusal, answer_for
from .settings import Settings


def create_app(settings: Optional[Settings] = None) -> Starlette:
    """Returns the ASGI application. It connects when it starts and when it is first called, so the server may come later."""
    made = settings or Settings()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.front = Front(made)
        try:
            yield
        finally:
            await app.state.front.client.close()

    routes = [*openai.ROUTES, *jina.ROUTES, *tei.ROUTES]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _answer_http_error})


async def _answer_http_error(request: Request, error: Exception) -> Response:
    """Answers what Starlette itself refuses."""
    path = request.url.path
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return answer_for(path, Refusal(NO_ROUTE, f"there is no {path} here"))
    if status == 405:
        return answer_for(path, Refusal(NO_METHOD, f"{request.method} is no method of {path}"))
    return answer_for(path, Refusal(INVALID, str(error)))
