"""Connection settings: address, TLS, token, retries and limits."""
from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import grpc

from .errors import invalid
from .messages import SERVICE, method_path

Metadata = Sequence[Tuple[str, Union[str, bytes]]]
# Calls that may run twice. Streams are not retried, nor are PutMemory and DropMemory, because a memory belongs to one server.
RETRIED = ("Attend", "Encode", "ListModels", "GetModel", "Tokenize", "GetTokenizer")
MAX_MESSAGE_BYTES = (1 << 31) - 1
# URLs that users write for gRPC servers; a host and a port must follow. gRPC resolves others, such as dns:///.
_URL = re.compile(r"(https?|grpcs?)://(.*)", re.IGNORECASE | re.DOTALL)
_PLACE = re.compile(r"(?:\[[^\[\]/?#@]+\]|[^\[\]:/?#@\s]+):([0-9]{1,5})/?")
# The client's timeout in a call; the method's timeout in a client.
DEFAULT = -1.0
QUICK_SECONDS = 60.0
# Calls whose time depends on their input.
COMPUTING = tuple(method_path(name) for name in ("Attend", "Encode", "PutMemory", "Tokenize"))
# A connection without responses to pings is closed, because calls without a timeout must not wait for it.
KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS = 60_000, 20_000


@dataclass(frozen=True)
class Tls:
    """PEM strings for a TLS connection.

    ca: trusted certificate authorities; None: the system's.
    certificate, key: client certificate, if the server requires one.
    """

    ca: Optional[bytes] = None
    certificate: Optional[bytes] = None
    key: Optional[bytes] = None


@dataclass(frozen=True)
class Connection:
    """The arguments of a Client, checked."""

    address: str
    tls: Union[Tls, bool] = False
    token: str = ""
    retry: bool = True
    max_message_bytes: int = MAX_MESSAGE_BYTES
    channel_options: Sequence[Tuple[str, Any]] = ()
    proxy: bool = False
    timeout: Optional[float] = DEFAULT

    def __post_init__(self) -> None:
        if not self.address:
            raise invalid("address", "host:port or unix:/path", "an empty text")
        url = _URL.match(self.address)
        place = _PLACE.fullmatch(url[2]) if url else None
        if url and not (place and 0 < int(place[1]) < 65536):
            raise invalid("address", "host:port, the server's gRPC port, without a path", repr(self.address))
        if self.token and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise invalid("token", "printable characters without spaces", "others")
        if self.token and not self.encrypted and not self.address.startswith("unix"):
            raise invalid("token", "TLS or a Unix socket, which keep it secret", f"{self.address} without tls")

    @property
    def target(self) -> str:
        """The gRPC target; for a URL, its host and port."""
        url = _URL.match(self.address)
        return url[2].rstrip("/") if url else self.address

    @property
    def encrypted(self) -> bool:
        """Whether the connection uses TLS, according to `tls` or a URL."""
        return bool(self.tls) or self.address.lower().startswith(("https://", "grpcs://"))

    def credentials(self) -> Optional[grpc.ChannelCredentials]:
        """Returns gRPC's credentials; None: the connection is not encrypted."""
        if not self.encrypted:
            return None
        tls = self.tls if isinstance(self.tls, Tls) else Tls()
        return grpc.ssl_channel_credentials(tls.ca, tls.key, tls.certificate)

    def metadata(self) -> List[Tuple[str, Union[str, bytes]]]:
        """Returns the metadata of each call."""
        return [("authorization", f"Bearer {self.token}")] if self.token else []

    def timeout_of(self, path: str, timeout: Optional[float]) -> Optional[float]:
        """Returns the timeout of a call in seconds; None: no limit. timeout: the call's own timeout, or DEFAULT."""
        if timeout == DEFAULT:
            timeout = self.timeout
        return timeout if timeout != DEFAULT else None if path in COMPUTING else QUICK_SECONDS

    def options(self) -> List[Tuple[str, Any]]:
        """Returns the channel arguments; the caller's take precedence."""
        return [
            ("grpc.max_send_message_length", self.max_message_bytes),
            ("grpc.max_receive_message_length", self.max_message_bytes),
            ("grpc.service_config", json.dumps(service_config())),
            ("grpc.enable_retries", int(self.retry)),
            ("grpc.per_rpc_retry_buffer_size", self.max_message_bytes),
            # By default gRPC would send even calls to localhost to the environment's proxy.
            ("grpc.enable_http_proxy", int(self.proxy)),
            ("grpc.keepalive_time_ms", KEEPALIVE_MS),
            ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
            *self.channel_options,
        ]


def service_config() -> Dict[str, Any]:
    """Returns the gRPC service config that keeps clients working while one of several servers restarts."""
    return {
        "loadBalancingConfig": [{"round_robin": {}}],
        "healthCheckConfig": {"serviceName": SERVICE},
        "methodConfig": [{
            "name": [{"service": SERVICE, "method": method} for method in RETRIED],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }],
        # A channel stops retrying calls while more than half of these are used up: then no server is there.
        "retryThrottling": {"maxTokens": 1000, "tokenRatio": 1},
    }
