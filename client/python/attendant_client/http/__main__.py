"""The program: python -m attendant_client.http."""
from __future__ import annotations

import argparse
import math
import pathlib
import sys
from typing import Any, Dict, Optional, Sequence, Union

import uvicorn

from ..channel import Tls
from .app import create_app
from .settings import Limits, Settings, named_model, read_keys

LIMITS = Limits()
DESCRIPTION = """Serves texts over HTTP in front of an Attendant server: OpenAI's /v1/embeddings and /v1/models, Jina's and
Cohere's /v1/rerank, and text-embeddings-inference's /embed, /embed_all, /rerank, /predict, /similarity, /tokenize, /info and
/health. Texts become token ids here, with the tokenizers of the models, which the server hands out."""
EPILOG = """A request that names no model goes to the only one that can do what it asks for. A caller of text-embeddings-inference
names one with the base URL http://HOST:PORT/models/NAME. The time-out of a request is --timeout or, if that is less, the
seconds in its header x-request-timeout. The server may be started later; until then, requests are answered with status 503."""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m attendant_client.http", description=DESCRIPTION, epilog=EPILOG)
    server = parser.add_argument_group("the server")
    server.add_argument("--server", default="localhost:8001", metavar="ADDRESS", help="host:port, unix:/path, or several servers, "
                        "ipv4:ADDRESS:PORT,ADDRESS:PORT (default: %(default)s)")
    server.add_argument("--server-tls", action="store_true", help="connect over TLS; implied by --server-ca and --server-cert")
    server.add_argument("--server-ca", metavar="FILE", help="PEM certificates that may have signed the server's")
    server.add_argument("--server-cert", metavar="FILE", help="PEM certificate to show to the server")
    server.add_argument("--server-key", metavar="FILE", help="PEM key of that certificate")
    server.add_argument("--server-token-file", metavar="FILE", help="file with the bearer token that the server asks for")
    http = parser.add_argument_group("HTTP")
    http.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0: all (default: %(default)s)")
    http.add_argument("--port", type=_port, default=8080, help="port to listen on; 0: any that is free (default: %(default)s)")
    http.add_argument("--tls-cert", metavar="FILE", help="serve HTTPS with this PEM certificate")
    http.add_argument("--tls-key", metavar="FILE", help="PEM key of that certificate")
    http.add_argument("--api-key-file", metavar="FILE", help="file with one key a line; each request but /health has to send one, "
                      "as `authorization: Bearer KEY`")
    http.add_argument("--log-level", default="info", choices=["critical", "error", "warning", "info", "debug"],
                      help="info has a line for each request (default: %(default)s)")
    models = parser.add_argument_group("models")
    models.add_argument("--model", action="append", default=[], metavar="NAME[=SERVED]", type=_checked(named_model),
                        help="offer the server's model SERVED as NAME, and none that is not named so; may be repeated "
                        "(default: all, by their own names)")
    models.add_argument("--auto-truncate", action=argparse.BooleanOptionalAction, default=True,
                        help="cut texts that are too long for a model where the request does not say; else refuse them")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--timeout", type=_above_zero(float), default=LIMITS.timeout, metavar="SECONDS",
                        help="from a request's headers to its answer (default: %(default)s)")
    limits.add_argument("--max-body-bytes", type=_above_zero(int), default=LIMITS.body_bytes, metavar="N",
                        help="the largest body of a request (default: %(default)s)")
    limits.add_argument("--max-texts", type=_above_zero(int), default=LIMITS.texts, metavar="N",
                        help="the most texts, or documents, of a request (default: %(default)s)")
    limits.add_argument("--max-text-characters", type=_above_zero(int), default=LIMITS.text_characters, metavar="N",
                        help="the longest text, with what is cut off then (default: %(default)s)")
    limits.add_argument("--max-requests", type=_above_zero(int), default=LIMITS.requests, metavar="N",
                        help="requests under way at a time; those beyond are answered with status 429 (default: %(default)s)")
    return parser


def _checked(function: Any) -> Any:
    """Returns the function for argparse, which shows the message of an ArgumentTypeError alone."""
    def check(text: str) -> Any:
        try:
            return function(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return check


def _above_zero(kind: Any) -> Any:
    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            raise ValueError(f"expected {'an integer' if kind is int else 'a number'} above 0; got {text!r}")
        return value
    return _checked(read)


def _port(text: str) -> int:
    if not (text.isdigit() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"expected 0..65535; got {text!r}")
    return int(text)


def _read(path: Optional[str]) -> Optional[bytes]:
    return pathlib.Path(path).read_bytes() if path else None


def _server_tls(options: argparse.Namespace) -> Union[Tls, bool]:
    files = [_read(path) for path in (options.server_ca, options.server_cert, options.server_key)]
    return Tls(*files) if any(files) else bool(options.server_tls)


def make_settings(options: argparse.Namespace) -> Settings:
    """Returns the settings that the options say. ValueError, OSError: a file is not as it should be."""
    token = _read(options.server_token_file) or b""
    keys = read_keys(pathlib.Path(options.api_key_file).read_text().splitlines()) if options.api_key_file else frozenset()
    models: Dict[str, str] = {}
    for name, served in options.model:
        if name in models:
            raise ValueError(f"--model: {name} is there twice")
        models[name] = served
    return Settings(
        server=options.server, tls=_server_tls(options), token=token.decode().strip(), models=models, api_keys=keys,
        truncate=options.auto_truncate,
        limits=Limits(timeout=options.timeout, body_bytes=options.max_body_bytes, texts=options.max_texts,
                      text_characters=options.max_text_characters, requests=options.max_requests))


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    if bool(options.tls_cert) != bool(options.tls_key):
        parser.error("--tls-cert and --tls-key go together")
    try:
        app = create_app(make_settings(options))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    uvicorn.run(app, host=options.host, port=options.port, log_level=options.log_level, ssl_certfile=options.tls_cert,
                ssl_keyfile=options.tls_key, timeout_graceful_shutdown=math.ceil(options.timeout), server_header=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
