"""KServe's InferenceGRPCClient."""
import asyncio

import common
from kserve import InferenceGRPCClient
from kserve_clients import listed, outputs, request


async def check_client(checks, options, expected):
    client = InferenceGRPCClient(options.grpc)
    checks.that("live, ready, model ready", await client.is_server_live() and await client.is_server_ready() and
                await client.is_model_ready("minilm"))
    ids, mask = expected["ids"], expected["mask"]
    for made in (request("minilm", input_ids=ids, attention_mask=mask), listed("minilm", input_ids=ids, attention_mask=mask)):
        found = outputs(await client.infer(made))
        for name in ("sentence_embedding", "last_hidden_state"):
            checks.same(f"{name} = native, of raw and listed ids", found[name], expected[name])
    rows = request("minilm.hidden", hidden_states=expected["rows"], attention_mask=expected["kept"])
    checks.same("hidden states = native", outputs(await client.infer(rows))["last_hidden_state"], expected["rows_hidden"])
    try:
        await client.infer(request("nobody", input_ids=ids))
    except Exception as error:  # which class depends on KServe's version
        checks.that("unknown model: NOT_FOUND", "NOT_FOUND" in str(error), str(error))
    else:
        raise AssertionError("unknown model: was accepted")
    await client.close()


if __name__ == "__main__":
    common.run("kserve", lambda *given: asyncio.run(check_client(*given)))
