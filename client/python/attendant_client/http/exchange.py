"""What all routes share: keys, limits, deadlines, and callers that hang up."""
from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import math
import time
from dataclasses import dataclass
from typing import Awaitable, Callable, Iterator

from starlette.requests import Request
from starlette.responses import Response

from ..aio import AsyncClient
from ..errors import AttendantError
from .members import Members, parse_object
from .models import Models
from .refusals import (BROKEN, BUSY, INVALID, LARGE_BODY, NO_KEY, SLOW_BODY, TIMEOUT, Refusal, answer_for, refusal_of)
from .settings import Settings, digest

# Seconds that a caller waits for an answer. The second one is what the package openai sends by itself.
TIMEOUT_HEADERS = ("x-request-timeout", "x-stainless-read-timeout")
PASSED = "the time-out of the request has passed"
GONE = Response(status_code=499)  # nobody reads it

log = logging.getLogger("attendant_client.http")


class Front:
    """What the application keeps while it runs: one connection to the server, for all callers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.client = AsyncClient(settings.server, tls=settings.tls, token=settings.token, timeout=settings.limits.timeout,
                                  wait=False)
        self.models = Models(self.client, settings.models)
        self._under_way = 0

    def check_key(self, request: Request) -> None:
        """Refuses a caller that sends none of the keys."""
        if not self.settings.api_keys:
            return
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        sent = digest(key.strip())
        known = [hmac.compare_digest(sent, one) for one in self.settings.api_keys]  # all of them, in the same time
        if scheme.lower() != "bearer" or not any(known):
            raise Refusal(NO_KEY, 'authorization: expected "Bearer KEY" with a key that is known here; got '
                          + ("none" if not key else "another one"))

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Holds one of the places for requests that are under way."""
        most = self.settings.limits.requests
        if self._under_way >= most:
            raise Refusal(BUSY, f"{most} requests are under way, which is the most that are taken", retry_after=1.0)
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1


@dataclass(frozen=True)
class Call:
    """A request that has been read. model: the name in its path; empty: none. deadline: by time.monotonic()."""

    front: Front
    members: Members
    model: str
    deadline: float

    def remaining(self) -> float:
        """Returns the seconds until the deadline."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Refusal(TIMEOUT, PASSED)
        return left


Handler = Callable[[Call], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def endpoint(handler: Handler, public: bool = False) -> Endpoint:
    """Returns Starlette's endpoint of a handler, which is cancelled when its caller is gone.

    public: it needs neither a key nor a place, for those who ask whether the application is well.
    """
    async def answer(request: Request) -> Response:
        try:
            front: Front = request.app.state.front
            if not public:
                front.check_key(request)
            with contextlib.nullcontext() if public else front.place():
                deadline = time.monotonic() + read_timeout(request, front.settings.limits.timeout)
                members = Members(await _read_members(request, front, deadline), front.settings.limits)
                call = Call(front, members, request.path_params.get("model", ""), deadline)
                return await _until_gone(request, handler(call), call)
        except Refusal as refusal:
            return answer_for(request.url.path, refusal)
        except AttendantError as error:
            return answer_for(request.url.path, refusal_of(error))
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return answer_for(request.url.path, Refusal(BROKEN, "the request failed here; the log says why"))
    return answer


def read_timeout(request: Request, most: float) -> float:
    """Returns the seconds that a request may take: what its headers say, but at most `most`."""
    seconds = most
    for name in TIMEOUT_HEADERS:
        value = request.headers.get(name)
        if value is None:
            continue
        try:
            asked = float(value)
        except ValueError:
            asked = math.nan
        if not asked > 0:
            raise Refusal(INVALID, f"{name}: expected seconds above 0; got {value[:40]!r}", name)
        seconds = min(seconds, asked)
    return seconds


async def _read_members(request: Request, front: Front, deadline: float) -> "dict[str, object]":
    if request.method in ("GET", "HEAD"):
        return {}
    try:
        body = await asyncio.wait_for(_read_body(request, front.settings.limits.body_bytes), deadline - time.monotonic())
    except asyncio.TimeoutError:
        raise Refusal(SLOW_BODY, "the body: expected it before the time-out of the request; got a part of it") from None
    return parse_object(body)


async def _read_body(request: Request, most: int) -> bytes:
    """Returns the body, of which no more than `most` bytes are kept."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise Refusal(LARGE_BODY, f"the body: expected at most {most} bytes; got {declared}")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Refusal(LARGE_BODY, f"the body: expected at most {most} bytes; got more")
    return bytes(body)


async def _until_gone(request: Request, work: Awaitable[Response], call: Call) -> Response:
    """Returns what the work returns, but cancels it when the caller hangs up, and when the deadline passes."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_wait_until_gone(request))
    try:
        done, _ = await asyncio.wait({task, gone}, timeout=call.remaining(), return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise Refusal(TIMEOUT, PASSED)
        return task.result() if task.done() else GONE
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
