"""What KServe's two clients are asked."""
import numpy as np
from kserve import InferInput, InferRequest


def request(model, **arrays):
    inputs = []
    for name, array in arrays.items():
        kind = {"int64": "INT64", "float32": "FP32"}[str(array.dtype)]
        inputs.append(InferInput(name, list(array.shape), kind))
        inputs[-1].set_data_from_numpy(array, binary_data=True)
    return InferRequest(model_name=model, infer_inputs=inputs, request_id="seven")


def listed(model, **arrays):
    """The same with elements as lists."""
    inputs = [InferInput(name, list(array.shape), "INT64", array.ravel().tolist()) for name, array in arrays.items()]
    return InferRequest(model_name=model, infer_inputs=inputs)


def outputs(answer) -> dict:
    return {one.name: one.as_numpy() for one in answer.outputs}


def shaped(output) -> np.ndarray:
    return np.array(output.data, np.float32).reshape(output.shape)
