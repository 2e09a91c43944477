"""Texts over HTTP: OpenAI's embeddings, Jina's and Cohere's rerank, and the calls of text-embeddings-inference.

    python -m attendant_client.http --server localhost:8001 --port 8080

A small ASGI application in front of an Attendant server, for callers that have texts and speak HTTP. `create_app` makes it
for an ASGI server of your own.
"""
from .app import create_app
from .settings import Limits, Settings

__all__ = ["Limits", "Settings", "create_app"]
