"""Errors of calls: AttendantError, with a subclass for each status code."""
from __future__ import annotations

import re
from typing import Any, Dict, Optional, Type

import grpc

# "token_ids[0, 2]: expected 0..99; got 100", "memory.lengths: …": the server names the field of the message first.
_FIELD = re.compile(r"([a-z_]+)(?:\.[a-z_]+)*(?:\[[^]]*\])?: ")
# Arguments that have another name than the message's field.
_ARGUMENTS = {"token_ids": "input_ids"}


class AttendantError(Exception):
    """A call failed.

    code: the gRPC status, such as grpc.StatusCode.INVALID_ARGUMENT.
    message: the message of the server, or of gRPC if the server did not respond.
    field: the rejected argument, such as "input_ids", if any.
    reason: the exhausted resource of the server, such as "memory"; empty: unknown.
    retry_after: seconds after which to retry; None: unknown.
    """

    code = grpc.StatusCode.UNKNOWN

    def __init__(self, message: str, *, code: Optional[grpc.StatusCode] = None, field: Optional[str] = None,
                 reason: str = "", retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.message = message
        self.field = field_of(message) if field is None and isinstance(self, (InvalidArgument, NotFound)) else field or ""
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" + (f" ({self.reason})" if self.reason else "")


class InvalidArgument(AttendantError, ValueError):
    """The request is invalid; the message names the field, the expected value and the value received."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class NotFound(AttendantError, LookupError):
    """There is no such model, memory, or file of a model."""

    code = grpc.StatusCode.NOT_FOUND


class FailedPrecondition(AttendantError):
    """A memory or sequence belongs to a model version that is no longer served."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class ServerBusy(AttendantError):
    """The server is full: `reason` says which resource is exhausted, `retry_after` when to retry."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class DeadlineExceeded(AttendantError, TimeoutError):
    """The timeout passed, or is predicted to be missed (`reason` "deadline_hopeless")."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class Unavailable(AttendantError):
    """The server cannot be reached or is not serving."""

    code = grpc.StatusCode.UNAVAILABLE


class Unauthenticated(AttendantError):
    """The server requires a valid bearer token."""

    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDenied(AttendantError):
    """The bearer token lacks the scope for this call."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Unimplemented(AttendantError):
    """The server does not support this method."""

    code = grpc.StatusCode.UNIMPLEMENTED


class Cancelled(AttendantError):
    """The call was cancelled."""

    code = grpc.StatusCode.CANCELLED


class Internal(AttendantError):
    """The server failed, or its response is invalid."""

    code = grpc.StatusCode.INTERNAL


_CLASSES: Dict[grpc.StatusCode, Type[AttendantError]] = {kind.code: kind for kind in AttendantError.__subclasses__()}
_CODES: Dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def field_of(message: str) -> str:
    """Returns the argument named by a server's message, if any."""
    found = _FIELD.match(message)
    return _ARGUMENTS.get(found[1], found[1]) if found else ""


def refused(field: str, why: str) -> InvalidArgument:
    """Returns the error for an argument that is refused before sending, worded like the server's."""
    return InvalidArgument(f"{field}: {why}", field=re.split(r"[\[.]", field)[0])


def invalid(field: str, expected: str, got: object) -> InvalidArgument:
    """Returns the error for an argument with an invalid value."""
    return refused(field, f"expected {expected}; got {got}")


def from_status(code: int, message: str, reason: str = "", retry_pushback_ms: int = 0) -> AttendantError:
    """Returns the error for a status in a message of the protocol."""
    status = _CODES.get(code, grpc.StatusCode.UNKNOWN)
    return _CLASSES.get(status, AttendantError)(
        message, code=status, reason=reason, retry_after=retry_pushback_ms / 1000 if retry_pushback_ms > 0 else None)


def from_rpc(error: Any) -> AttendantError:
    """Returns the error for a gRPC error."""
    code = error.code() or grpc.StatusCode.UNKNOWN
    trailers = {key: value for key, value in error.trailing_metadata() or ()}
    pushback = str(trailers.get("grpc-retry-pushback-ms", ""))
    return _CLASSES.get(code, AttendantError)(
        error.details() or "", code=code, reason=str(trailers.get("attendant-reason", "")),
        retry_after=int(pushback) / 1000 if pushback.isdigit() else None)
