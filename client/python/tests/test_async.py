"""The calls of AsyncClient."""
import asyncio
import time

import numpy as np
import pytest
from attendant_client import AsyncClient, DeadlineExceeded, InvalidArgument, NotFound, Unavailable, encode_request
from fake_server import serve


def run(server, calls):
    async def main():
        async with AsyncClient(server.address) as client:
            return await calls(client)

    return asyncio.run(main())


def test_calls(server, client, random):
    rows = random.standard_normal((1, 3, 24)).astype(np.float32)

    async def calls(aio):
        registered = await aio.put_memory("bert", memory=rows)
        attended = await aio.attend("bert", hidden_states=rows, memory_handle=registered.handle)
        return (await aio.models(), (await aio.model("bert")).layers, attended.output,
                await aio.encode("bert", input_ids=[[1, 2]]), await aio.drop_memory(registered.handle) == registered.bytes)

    models, layers, output, encoded, dropped = run(server, calls)
    assert models == ["bert", "classifier", "fast", "splade", "tagger", "tiny", "vit", "worked-example"] and layers == 2 and dropped
    np.testing.assert_array_equal(output, client.attend("bert", hidden_states=rows).output)
    np.testing.assert_array_equal(encoded.hidden_states[0], client.encode("bert", input_ids=[[1, 2]]).hidden_states[0])


def test_calls_beside_one_another(server):
    async def calls(aio):
        return await asyncio.gather(*(aio.encode("bert", input_ids=[[index] * 5]) for index in range(50)))

    assert len(run(server, calls)) == 50


def test_errors(server):
    async def calls(aio):
        with pytest.raises(InvalidArgument) as refused:
            await aio.encode("bert", input_ids=[[60]])
        assert refused.value.field == "input_ids"
        with pytest.raises(NotFound):
            await aio.model("nobody")

    run(server, calls)


def test_deadlines():
    async def main(address):
        async with AsyncClient(address, timeout=0.05) as aio:
            with pytest.raises(DeadlineExceeded):
                await aio.models()
            assert await aio.models(timeout=10) == []

    with serve({"ListModels": lambda *_: time.sleep(0.4) or b""}) as address:
        asyncio.run(main(address))


def items_of_either_kind(kind):
    requests = [encode_request("bert", input_ids=[[index]]) for index in range(40)]

    async def asynchronous():
        for request in requests:
            yield request

    return asynchronous() if kind == "async" else requests


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_streams(server, client, kind):
    async def calls(aio):
        return {answer.index: answer.result() async for answer in aio.encode_stream(items_of_either_kind(kind))}

    found = run(server, calls)
    assert sorted(found) == list(range(40))
    np.testing.assert_array_equal(found[7].hidden_states[0], client.encode("bert", input_ids=[[7]]).hidden_states[0])


def test_a_stream_whose_items_raise(server):
    async def items():
        yield encode_request("bert", input_ids=[[1]])
        raise KeyError("no more")

    async def calls(aio):
        found = []
        with pytest.raises(KeyError, match="no more"):
            async for answer in aio.encode_stream(items()):
                found.append(answer.index)
        return found

    assert run(server, calls) == [0]


def test_a_stream_that_is_left_early(server):
    async def calls(aio):
        stream = aio.encode_stream(encode_request("bert", input_ids=[[1]]) for _ in range(1000))
        await stream.__anext__()
        await stream.aclose()
        return await aio.models()

    assert "bert" in run(server, calls)


def test_a_cancelled_task_cancels_its_call(server):
    async def calls(aio):
        task = asyncio.ensure_future(aio.encode("bert", input_ids=[[1] * 48] * 300))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await aio.models()

    assert "bert" in run(server, calls)


def test_no_server(server):
    async def main():
        async with AsyncClient("127.0.0.1:1", retry=False) as aio:
            with pytest.raises(Unavailable):
                await aio.models()
            with pytest.raises(Unavailable):
                async for _ in aio.encode_stream([encode_request("bert", input_ids=[[1]])]):
                    pass

    asyncio.run(main())
