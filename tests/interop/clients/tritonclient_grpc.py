"""tritonclient.grpc, calls that wait."""
import queue

import common
import ml_dtypes
import numpy as np
import tritonclient.grpc as triton

KINDS = {"int64": "INT64", "int32": "INT32", "float32": "FP32", "float16": "FP16", "bool": "BOOL",
         "bfloat16": "BF16", "object": "BYTES"}


def inputs(**arrays):
    made = []
    for name, array in arrays.items():
        made.append(triton.InferInput(name, array.shape, KINDS[str(array.dtype)]))
        made[-1].set_data_from_numpy(array)
    return made


def wanted(*names):
    return [triton.InferRequestedOutput(name) for name in names]


def check_methods(checks, client):
    checks.that("live, ready, model ready", client.is_server_live() and client.is_server_ready() and
                client.is_model_ready("minilm") and client.is_model_ready("minilm.hidden"))
    checks.that("server metadata", "statistics" in client.get_server_metadata().extensions)
    for name, first in (("minilm", "input_ids"), ("minilm.text", "text")):
        checks.that("model metadata", client.get_model_metadata(name).inputs[0].name == first)
    checks.that("model config", client.get_model_config("minilm").config.max_batch_size > 0)
    checks.that("repository index", "minilm" in {one.name for one in client.get_model_repository_index().models})


def check_ids(checks, client, expected):
    ids, mask = expected["ids"], expected["mask"]
    names = ("sentence_embedding", "last_hidden_state", "hidden_states.3", "attentions.5")
    answer = client.infer("minilm", inputs(input_ids=ids, attention_mask=mask), outputs=wanted(*names), request_id="seven")
    checks.that("id echoed", answer.get_response().id == "seven")
    for name, known in zip(names, ("sentence_embedding", "last_hidden_state", "hidden_states_2", "attentions_5")):
        checks.same(f"{name} = native", answer.as_numpy(name), expected[known])
    for made in (inputs(input_ids=ids.astype(np.int32), attention_mask=mask.astype(bool)),
                 inputs(input_ids=ids, attention_mask=mask, token_type_ids=np.zeros_like(ids))):
        answer = client.infer("minilm", made)
        checks.same("INT32, BOOL, default outputs", answer.as_numpy("sentence_embedding"), expected["sentence_embedding"])
    answer = client.infer("minilm", inputs(input_ids=ids, attention_mask=mask), priority=1, timeout=30_000_000,
                          client_timeout=30, parameters={"normalize": True})
    checks.same("priority, timeout, parameters", answer.as_numpy("sentence_embedding"), expected["normalized"])


def check_texts(checks, client, expected):
    for name in ("minilm.text", "minilm"):
        answer = client.infer(name, inputs(text=expected["texts"].astype(object)), outputs=wanted("sentence_embedding"))
        checks.same("texts = native", answer.as_numpy("sentence_embedding"), expected["sentence_embedding"])


def check_rows(checks, client, expected):
    rows, kept = expected["rows"], expected["kept"]
    answer = client.infer("minilm.hidden", inputs(hidden_states=rows, attention_mask=kept),
                          outputs=wanted("context_layer", "attentions"))
    checks.same("context_layer = native", answer.as_numpy("context_layer"), expected["context"])
    checks.same("attentions = native", answer.as_numpy("attentions"), expected["probabilities"])
    answer = client.infer("minilm.hidden", inputs(hidden_states=rows, attention_mask=kept))
    checks.same("hidden states = native", answer.as_numpy("last_hidden_state"), expected["rows_hidden"])
    half = client.infer("minilm.hidden", inputs(hidden_states=rows.astype(np.float16), attention_mask=kept),
                        outputs=wanted("context_layer"))
    checks.same("FP16 rows = native", half.as_numpy("context_layer"), expected["context_of_half"])
    answer = client.infer("minilm.hidden", inputs(hidden_states=rows.astype(ml_dtypes.bfloat16), attention_mask=kept),
                          outputs=wanted("context_layer"), parameters={"output_datatype": "BF16"})
    made = answer.as_numpy("context_layer")
    checks.that("BF16 answer", made.dtype == ml_dtypes.bfloat16, made.dtype)
    checks.close("BF16 rows", made.astype(np.float32), expected["context"], 0.03)


def check_asynchronous(checks, client, expected):
    answers = queue.Queue()
    for _ in range(16):
        client.async_infer("minilm", inputs(input_ids=expected["ids"], attention_mask=expected["mask"]),
                           lambda result, error: answers.put((result, error)))
    for _ in range(16):
        result, error = answers.get(timeout=60)
        checks.that("async_infer", error is None, error)
        checks.same("async_infer = native", result.as_numpy("sentence_embedding"), expected["sentence_embedding"])


def check_refusals(checks, client, expected):
    made = inputs(input_ids=expected["ids"])
    checks.refuses("unknown model: NOT_FOUND", lambda: client.infer("nobody", made),
                   triton.InferenceServerException, "NOT_FOUND", "nobody")
    checks.refuses("compression: UNIMPLEMENTED", lambda: client.infer("minilm", made, compression_algorithm="gzip"),
                   triton.InferenceServerException, "UNIMPLEMENTED", "disabled")
    checks.refuses("shared memory: UNIMPLEMENTED", lambda: client.register_system_shared_memory("a", "/a", 64),
                   triton.InferenceServerException, "UNIMPLEMENTED")
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()


def check(checks, options, expected):
    with triton.InferenceServerClient(options.grpc) as client:
        check_methods(checks, client)
        check_ids(checks, client, expected)
        check_texts(checks, client, expected)
        check_rows(checks, client, expected)
        check_asynchronous(checks, client, expected)
        check_refusals(checks, client, expected)
        statistics = client.get_inference_statistics("minilm").model_stats[0]
        checks.that("statistics", statistics.inference_stats.success.count > 0 and statistics.inference_count > 0)


if __name__ == "__main__":
    common.run("tritonclient", check)
