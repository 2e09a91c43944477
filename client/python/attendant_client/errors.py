"""What calls raise: AttendantError, with a subclass for each status that a server answers."""
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
    message: the server's sentence, or that of gRPC if no server answered.
    field: the argument that the message is about, such as "input_ids"; empty: none.
    reason: what the server had too little of, such as "memory"; empty: not told.
    retry_after: the seconds after which the server asks to be tried again; None: not told.
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
    """The request cannot be served; the message names the field, what was expected and what came."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class NotFound(AttendantError, LookupError):
    """There is no such model, memory, or file of a model."""

    code = grpc.StatusCode.NOT_FOUND


class FailedPrecondition(AttendantError):
    """A memory or a sequence was begun with a version of the model that is no longer served."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class ServerBusy(AttendantError):
    """The server is full now: `reason` and `retry_after` say of what, and when to try again."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class DeadlineExceeded(AttendantError, TimeoutError):
    """The time-out passed, or could not have been met (`reason` "deadline_hopeless")."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class Unavailable(AttendantError):
    """The server cannot be reached, or does not serve now."""

    code = grpc.StatusCode.UNAVAILABLE


class Unauthenticated(AttendantError):
    """The server asks for a bearer token, and this is none that it knows."""

    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDenied(AttendantError):
    """The bearer token is not for these calls."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Unimplemented(AttendantError):
    """The server is older than this method."""

    code = grpc.StatusCode.UNIMPLEMENTED


class Cancelled(AttendantError):
    """The call was cancelled."""

    code = grpc.StatusCode.CANCELLED


class Internal(AttendantError):
    """The server failed, or its answer cannot be read."""

    code = grpc.StatusCode.INTERNAL


_CLASSES: Dict[grpc.StatusCode, Type[AttendantError]] = {kind.code: kind for kind in AttendantError.__subclasses__()}
_CODES: Dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def field_of(message: str) -> str:
    """Returns the argument that a message of the server is about; empty: none."""
    found = _FIELD.match(message)
    return _ARGUMENTS.get(found[1], found[1]) if found else ""


def invalid(field: str, expected: str, got: object) -> InvalidArgument:
    """Returns the error of an argument that is refused before anything is sent, worded as the server's are."""
    return InvalidArgument(f"{field}: expected {expected}; got {got}", field=re.split(r"[\[.]", field)[0])


def from_status(code: int, message: str, reason: str = "", retry_pushback_ms: int = 0) -> AttendantError:
    """Returns the error of a status in a message of the protocol."""
    status = _CODES.get(code, grpc.StatusCode.UNKNOWN)
    return _CLASSES.get(status, AttendantError)(
        message, code=status, reason=reason, retry_after=retry_pushback_ms / 1000 if retry_pushback_ms > 0 else None)


def from_rpc(error: Any) -> AttendantError:
    """Returns the error of a call that gRPC raised an error for."""
    code = error.code() or grpc.StatusCode.UNKNOWN
    trailers = {key: value for key, value in error.trailing_metadata() or ()}
    pushback = str(trailers.get("grpc-retry-pushback-ms", ""))
    return _CLASSES.get(code, AttendantError)(
        error.details() or "", code=code, reason=str(trailers.get("attendant-reason", "")),
        retry_after=int(pushback) / 1000 if pushback.isdigit() else None)
