"""What a caller is told when a request is not served, in the forms of OpenAI and of text-embeddings-inference."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Optional

from starlette.responses import JSONResponse, Response

from .. import errors


@dataclass(frozen=True)
class Kind:
    """A reason to refuse, as both protocols know it: HTTP status, and the words that stand for it in the body."""

    openai_status: int
    openai_type: str
    openai_code: Optional[str]
    tei_status: int
    tei_type: str


_REQUEST = "invalid_request_error"
MALFORMED = Kind(400, _REQUEST, None, 400, "Validation")
INVALID = Kind(400, _REQUEST, None, 422, "Validation")
EMPTY = Kind(400, _REQUEST, None, 400, "Empty")
OVERSIZED = Kind(400, _REQUEST, None, 413, "Validation")
LARGE_BODY = Kind(413, _REQUEST, None, 413, "Validation")
UNTOKENIZABLE = Kind(400, _REQUEST, None, 422, "Tokenizer")
SLOW_BODY = Kind(408, _REQUEST, None, 408, "Validation")
NO_KEY = Kind(401, _REQUEST, "invalid_api_key", 401, "Validation")
NO_MODEL = Kind(404, _REQUEST, "model_not_found", 404, "Validation")
NO_ROUTE = Kind(404, _REQUEST, "unknown_url", 404, "Validation")
NO_METHOD = Kind(405, _REQUEST, "method_not_allowed", 405, "Validation")
UNFIT = Kind(400, _REQUEST, "model_not_supported", 424, "Backend")
BUSY = Kind(429, "rate_limit_error", "rate_limit_exceeded", 429, "Overloaded")
TIMEOUT = Kind(504, "api_error", "timeout", 504, "Backend")
UNAVAILABLE = Kind(503, "api_error", "service_unavailable", 503, "Unhealthy")
FAILED = Kind(502, "api_error", "server_error", 424, "Backend")
BROKEN = Kind(500, "api_error", "internal_error", 500, "Backend")

_KINDS = {
    errors.InvalidArgument: INVALID, errors.DeadlineExceeded: TIMEOUT, errors.Unavailable: UNAVAILABLE,
    errors.FailedPrecondition: UNFIT,
}


class Refusal(Exception):
    """A request is not served.

    message: names the member of the request, what was expected and what came. field: the member, for OpenAI's `param`.
    retry_after: the seconds after which to try again; None: not told.
    """

    def __init__(self, kind: Kind, message: str, field: str = "", retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.field = field
        self.retry_after = retry_after


def invalid(field: str, expected: str, got: object, kind: Kind = INVALID) -> Refusal:
    """Returns the refusal of a member of the request."""
    return Refusal(kind, f"{field}: expected {expected}; got {got}", field.partition("[")[0])


def refusal_of(error: errors.AttendantError) -> Refusal:
    """Returns what callers are told of an error of the server, or of the client."""
    if isinstance(error, errors.NotFound):
        return Refusal(NO_MODEL if error.field == "model" else UNFIT, error.message, error.field)
    if isinstance(error, errors.ServerBusy):
        return Refusal(BUSY, error.message, retry_after=error.retry_after or 1.0)
    kind = _KINDS.get(type(error), FAILED)
    return Refusal(kind, error.message if kind is not FAILED else f"the server answered {error}", error.field)


def _headers(refusal: Refusal) -> Dict[str, str]:
    if refusal.kind is NO_KEY:
        return {"www-authenticate": "Bearer"}
    if refusal.kind is LARGE_BODY:
        return {"connection": "close"}  # the rest of the body is not read
    if refusal.retry_after is None:
        return {}
    # The first is HTTP's, in whole seconds; the other one is what the package openai looks for.
    return {"retry-after": str(math.ceil(refusal.retry_after)), "retry-after-ms": str(math.ceil(refusal.retry_after * 1000))}


def openai_answer(refusal: Refusal) -> Response:
    kind = refusal.kind
    body: Dict[str, Any] = {"error": {"message": refusal.message, "type": kind.openai_type, "param": refusal.field or None,
                                      "code": kind.openai_code}}
    return JSONResponse(body, kind.openai_status, _headers(refusal))


def tei_answer(refusal: Refusal) -> Response:
    kind = refusal.kind
    return JSONResponse({"error": refusal.message, "error_type": kind.tei_type}, kind.tei_status, _headers(refusal))


def answer_for(path: str, refusal: Refusal) -> Response:
    """Returns the answer in the form of the protocol that a path belongs to."""
    return openai_answer(refusal) if path.startswith(("/v1/", "/v2/")) else tei_answer(refusal)
