"""Calls a method of the synchronous or of the asyncio client."""
import asyncio

from attendant_client import AsyncClient, Client


def call(kind, server, method, *arguments, **options):
    """Returns the result of a call on a new connection. kind: "async" or anything else for the synchronous client."""
    async def main():
        async with AsyncClient(server.address) as client:
            return await getattr(client, method)(*arguments, **options)

    if kind == "async":
        return asyncio.run(main())
    with Client(server.address) as client:
        return getattr(client, method)(*arguments, **options)
