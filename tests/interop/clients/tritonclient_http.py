"""tritonclient.http: the protocol's REST form, with binary tensors and with JSON."""
import common
import ml_dtypes
import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

KINDS = {"int64": "INT64", "int32": "INT32", "float32": "FP32", "float16": "FP16", "bfloat16": "BF16"}


def inputs(binary, **arrays):
    made = []
    for name, array in arrays.items():
        made.append(triton.InferInput(name, list(array.shape), KINDS[str(array.dtype)]))
        made[-1].set_data_from_numpy(array, binary_data=binary)
    return made


def wanted(binary, *names):
    return [triton.InferRequestedOutput(name, binary_data=binary) for name in names]


def check_methods(checks, client):
    checks.that("live, ready, model ready", client.is_server_live() and client.is_server_ready() and
                client.is_model_ready("minilm"))
    checks.that("server metadata", client.get_server_metadata()["name"] != "")
    checks.that("model metadata", "input_ids" in {one["name"] for one in client.get_model_metadata("minilm")["inputs"]})
    checks.that("model config", client.get_model_config("minilm")["max_batch_size"] > 0)
    checks.that("repository index", "minilm" in {one["name"] for one in client.get_model_repository_index()})


def check_ids(checks, client, expected):
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
    calls = [client.async_infer("minilm", inputs(True, input_ids=ids, attention_mask=mask)) for _ in range(8)]
    for call in calls:
        checks.same("async_infer = native", call.get_result().as_numpy("sentence_embedding"), expected["sentence_embedding"])


def check_rows(checks, client, expected):
    rows, kept = expected["rows"], expected["kept"]
    outputs = wanted(True, "context_layer")
    answer = client.infer("minilm.hidden", inputs(True, hidden_states=rows, attention_mask=kept), outputs=outputs)
    checks.same("context_layer = native", answer.as_numpy("context_layer"), expected["context"])
    answer = client.infer("minilm.hidden", inputs(True, hidden_states=rows.astype(np.float16), attention_mask=kept), outputs=outputs)
    checks.same("FP16 rows = native", answer.as_numpy("context_layer"), expected["context_of_half"])
    answer = client.infer("minilm.hidden", inputs(True, hidden_states=rows.astype(ml_dtypes.bfloat16), attention_mask=kept),
                          outputs=outputs)
    checks.close("BF16 rows", answer.as_numpy("context_layer"), expected["context"], 0.03)


def check_refusals(checks, client, expected):
    made = inputs(True, input_ids=expected["ids"])
    checks.refuses("unknown model: 404", lambda: client.infer("nobody", made), InferenceServerException, "404", "nobody")
    checks.refuses("compression: 4xx", lambda: client.infer("minilm", made, request_compression_algorithm="gzip"),
                   InferenceServerException, "[4")


def check(checks, options, expected):
    with triton.InferenceServerClient(options.http, concurrency=4) as client:
        check_methods(checks, client)
        check_ids(checks, client, expected)
        check_rows(checks, client, expected)
        check_refusals(checks, client, expected)
        statistics = client.get_inference_statistics("minilm")["model_stats"][0]
        checks.that("statistics", int(statistics["inference_stats"]["success"]["count"]) > 0)


if __name__ == "__main__":
    common.run("tritonclient", check)
