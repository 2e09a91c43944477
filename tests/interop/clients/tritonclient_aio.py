"""tritonclient.grpc.aio: many calls at once, a time-out and a refusal."""
import asyncio

import common
import tritonclient.grpc.aio as triton
from tritonclient.utils import InferenceServerException
from tritonclient_grpc import inputs, wanted


async def check_client(checks, options, expected):
    async with triton.InferenceServerClient(options.grpc) as client:
        checks.that("live, ready, model ready", await client.is_server_live() and await client.is_server_ready() and
                    await client.is_model_ready("minilm"))
        made = inputs(input_ids=expected["ids"], attention_mask=expected["mask"])
        calls = [client.infer("minilm", made, outputs=wanted("sentence_embedding")) for _ in range(64)]
        for answer in await asyncio.gather(*calls):
            checks.same("64 calls at once = native", answer.as_numpy("sentence_embedding"), expected["sentence_embedding"])
        rows = inputs(hidden_states=expected["rows"], attention_mask=expected["kept"])
        answer = await client.infer("minilm.hidden", rows, outputs=wanted("context_layer"))
        checks.same("context_layer = native", answer.as_numpy("context_layer"), expected["context"])
        for model, timeout, word in (("nobody", None, "NOT_FOUND"), ("minilm", 1e-6, "DEADLINE_EXCEEDED")):
            try:
                await client.infer(model, made, client_timeout=timeout)
            except InferenceServerException as error:
                checks.that(word, word in str(error), str(error))
            else:
                raise AssertionError(f"{word}: was accepted")


if __name__ == "__main__":
    common.run("tritonclient", lambda *given: asyncio.run(check_client(*given)))
