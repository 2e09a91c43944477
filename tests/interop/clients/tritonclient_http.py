"""tritonclient.http: the protocol's REST form, with binary tensors and with JSON."""
import common
import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

KINDS = {"int64": "INT64", "int32": "INT32", "float32": "FP32"}


def inputs(binary, **arrays):
    made = []
    for name, array in arrays.items():
        made.append(triton.InferInput(name, list(array.shape), KINDS[str(array.dtype)]))
        made[-1].set_data_from_numpy(array, binary_data=binary)
    return made


def wanted(binary, *names):
    return [triton.InferRequestedOutput(name, binary_data=binary) for name in names]


def check(checks, options, expected):
    with triton.InferenceServerClient(options.http, concurrency=4) as client:
        checks.that("live, ready, model ready", client.is_server_live() and client.is_server_ready() and
                    client.is_model_ready("minilm"))
        checks.that("server metadata", client.get_server_metadata()["name"] != "")
        checks.that("model metadata", "input_ids" in {one["name"] for one in client.get_model_metadata("minilm")["inputs"]})
        ids, mask = expected["ids"], expected["mask"]
        names = ("sentence_embedding", "last_hidden_state")
        for there in (True, False):
            for back in (True, False):
                answer = client.infer("minilm", inputs(there, input_ids=ids, attention_mask=mask),
                                      outputs=wanted(back, *names), request_id="seven")
                for name in names:
                    kind = f"{'binary' if there else 'JSON'} to {'binary' if back else 'JSON'}"
                    checks.same(f"{kind} = native", answer.as_numpy(name), expected[name])
                checks.that("id echoed", answer.get_response()["id"] == "seven")
        answer = client.infer("minilm", inputs(True, input_ids=ids.astype(np.int32), attention_mask=mask))
        checks.same("default outputs", answer.as_numpy("sentence_embedding"), expected["sentence_embedding"])
        rows = inputs(True, hidden_states=expected["rows"], attention_mask=expected["kept"])
        answer = client.infer("minilm.hidden", rows, outputs=wanted(True, "context_layer"))
        checks.same("context_layer = native", answer.as_numpy("context_layer"), expected["context"])
        calls = [client.async_infer("minilm", inputs(True, input_ids=ids, attention_mask=mask)) for _ in range(8)]
        for call in calls:
            checks.same("async_infer = native", call.get_result().as_numpy("sentence_embedding"), expected["sentence_embedding"])
        checks.refuses("unknown model: 404", lambda: client.infer("nobody", rows), InferenceServerException, "404")


if __name__ == "__main__":
    common.run("tritonclient", check)
