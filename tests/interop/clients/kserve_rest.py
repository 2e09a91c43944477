"""KServe's InferenceRESTClient, of version 2 of the protocol."""
import asyncio

import common
from kserve import InferenceRESTClient, RESTConfig
from kserve_clients import listed, outputs, request, shaped


async def check_client(checks, options, expected):
    url = f"http://{options.http}"
    client = InferenceRESTClient(RESTConfig(protocol="v2", retries=0))
    checks.that("live, ready, model ready", await client.is_server_live(url) and await client.is_server_ready(url) and
                await client.is_model_ready(url, "minilm"))
    ids, mask = expected["ids"], expected["mask"]
    answer = await client.infer(url, listed("minilm", input_ids=ids, attention_mask=mask), model_name="minilm")
    by_name = {one.name: one for one in answer.outputs}
    first = answer.outputs[0]  # as KServe's examples read it
    checks.same("outputs[0].data = native", shaped(first), expected[first.name])
    checks.same("sentence_embedding = native", shaped(by_name["sentence_embedding"]), expected["sentence_embedding"])
    answer = await client.infer(url, request("minilm", input_ids=ids, attention_mask=mask), model_name="minilm")
    checks.same("binary inputs = native", outputs(answer)["sentence_embedding"], expected["sentence_embedding"])
    try:
        await client.infer(url, listed("nobody", input_ids=ids), model_name="nobody")
    except Exception as error:  # which class depends on KServe's version
        checks.that("unknown model: 404", "404" in str(error), str(error))
    else:
        raise AssertionError("unknown model: was accepted")
    await client.close()


if __name__ == "__main__":
    common.run("kserve", lambda *given: asyncio.run(check_client(*given)))
