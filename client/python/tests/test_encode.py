"""Encode, compared with float64 formulas."""
import sys

import numpy as np
import pytest
from attendant_client import InvalidArgument, messages
from bert import SMALL

TOLERANCE = 2e-5
SEQUENCES = [[2, 7, 1, 8], [2, 8], [1, 8, 2, 8, 4, 5, 9]]
LENGTHS = [4, 2, 7]


def padded_ids():
    ids = np.zeros((3, 7), np.int32)
    mask = np.zeros((3, 7), bool)
    for row, sequence in enumerate(SEQUENCES):
        ids[row, :len(sequence)] = sequence
        mask[row, :len(sequence)] = True
    return ids, mask


@pytest.fixture
def expected(reference):
    return [reference.encode(reference.embed(np.array(sequence))) for sequence in SEQUENCES]


def test_list_of_ids_comes_back_as_a_list(client, reference, expected):
    answer = client.encode("bert", input_ids=SEQUENCES, pooling="model")
    assert [rows.shape for rows in answer.hidden_states] == [(length, SMALL.width) for length in LENGTHS]
    for rows, right in zip(answer.hidden_states, expected):
        np.testing.assert_allclose(rows, right, atol=TOLERANCE)
    np.testing.assert_allclose(answer.pooled, [reference.mean_vector(rows) for rows in expected], atol=TOLERANCE)
    assert answer.execution.tokens == sum(LENGTHS)
    assert answer.execution.compute_type == "f32"


def test_ids_may_come_from_generators(client, expected):
    answer = client.encode("bert", input_ids=(iter(ids) for ids in SEQUENCES), attention_mask=map(np.ones_like, SEQUENCES))
    assert len(answer.hidden_states) == len(SEQUENCES)
    for rows, right in zip(answer.hidden_states, expected):
        np.testing.assert_allclose(rows, right, atol=TOLERANCE)


def test_padded_ids(client, expected):
    ids, mask = padded_ids()
    answer = client.encode("bert", input_ids=ids, attention_mask=mask)
    assert answer.hidden_states.shape == (3, 7, SMALL.width)
    for rows, right, length in zip(answer.hidden_states, expected, LENGTHS):
        np.testing.assert_allclose(rows[:length], right, atol=TOLERANCE)
        assert not rows[length:].any()
    assert answer.pooled is None


def test_packed_and_padded_with_lengths(client, expected):
    ids, _ = padded_ids()
    packed = client.encode("bert", input_ids=np.concatenate(SEQUENCES), lengths=LENGTHS)
    np.testing.assert_allclose(packed.hidden_states, np.concatenate(expected), atol=TOLERANCE)
    padded = client.encode("bert", input_ids=ids, lengths=LENGTHS)
    np.testing.assert_allclose(padded.hidden_states[1, :2], expected[1], atol=TOLERANCE)


def test_sequence_first(client, expected):
    ids, mask = padded_ids()
    answer = client.encode("bert", input_ids=ids.T, attention_mask=mask, layout="sequence_first")
    assert answer.hidden_states.shape == (7, 3, SMALL.width)
    np.testing.assert_allclose(answer.hidden_states[:2, 1], expected[1], atol=TOLERANCE)


def test_what_a_tokenizer_returns_is_taken_as_it_is(client, reference, expected):
    """With padding and without: lists of integers, and masks beside them."""
    ids, mask = padded_ids()
    padded = client.encode("bert", input_ids=ids.tolist(), attention_mask=mask.astype(int).tolist(),
                           token_type_ids=np.zeros_like(ids).tolist())
    plain = client.encode("bert", input_ids=SEQUENCES, attention_mask=[[1] * length for length in LENGTHS])
    for answer in (padded, plain):
        for rows, right in zip(answer.hidden_states, expected):
            np.testing.assert_allclose(rows, right, atol=TOLERANCE)


def test_padding_on_the_left_of_a_list(client, expected):
    answer = client.encode("bert", input_ids=[[0, 0, 2, 8]], attention_mask=[[0, 0, 1, 1]])
    np.testing.assert_allclose(answer.hidden_states[0], expected[1], atol=TOLERANCE)


def test_token_types(client, reference):
    types = [[0, 1, 1, 0], [1, 1], [0, 0, 0, 1, 1, 1, 1]]
    answer = client.encode("bert", input_ids=SEQUENCES, token_type_ids=types)
    for rows, sequence, of_sequence in zip(answer.hidden_states, SEQUENCES, types):
        right = reference.encode(reference.embed(np.array(sequence), np.array(of_sequence)))
        np.testing.assert_allclose(rows, right, atol=TOLERANCE)


def test_position_ids(client, reference):
    shifted = client.encode("bert", input_ids=[[5, 6]], position_ids=[[1, 0]]).hidden_states[0]
    plain = client.encode("bert", input_ids=[[6, 5]]).hidden_states[0]
    np.testing.assert_allclose(shifted, plain[::-1], atol=TOLERANCE)


def test_classifier(client, reference, expected):
    answer = client.encode("classifier", input_ids=SEQUENCES, pooling="classifier", return_hidden_states=False)
    assert answer.hidden_states is None
    np.testing.assert_allclose(answer.pooled, [reference.scores(rows) for rows in expected], atol=TOLERANCE)


def test_token_vectors(client, reference, expected):
    answer = client.encode("tagger", input_ids=SEQUENCES, return_token_vectors=True, return_hidden_states=False)
    assert answer.hidden_states is None
    for scores, right in zip(answer.token_vectors, expected):
        np.testing.assert_allclose(scores, reference.token_scores(right), atol=TOLERANCE)
    scaled = client.encode("tagger", input_ids=SEQUENCES[:1], return_token_vectors=True, normalize_token_vectors=True)
    np.testing.assert_allclose(np.linalg.norm(scaled.token_vectors[0], axis=-1), 1, atol=TOLERANCE)


def test_prompts_are_left_out_of_named_modes(client):
    answer = client.encode("bert", input_ids=SEQUENCES, pooling="mean", prompt_tokens=1)
    for rows, vector in zip(answer.hidden_states, answer.pooled):
        np.testing.assert_allclose(vector, rows[1:].mean(0) if len(rows) > 1 else 0 * rows[0], atol=1e-5)
    each = client.encode("bert", input_ids=SEQUENCES, pooling="first_token", prompt_tokens=[0] * len(SEQUENCES))
    np.testing.assert_array_equal(each.pooled, [rows[0] for rows in each.hidden_states])
    # The pooling of the model's own files takes prompts.
    whole, without = (client.encode("bert", input_ids=SEQUENCES, pooling="model", prompt_tokens=count) for count in (None, 1))
    np.testing.assert_array_equal(whole.pooled, without.pooled)


def test_texts_take_the_mean_where_no_files_say_how_to_pool(client):
    pooling = {name: client.model(name).text_pooling for name in ("bert", "splade", "tagger")}
    assert pooling == {"bert": messages.MODEL_POOLING, "splade": messages.MEAN, "tagger": messages.MODEL_POOLING}


def test_pooling_of_other_kinds(client, expected):
    answer = client.encode("bert", input_ids=SEQUENCES, pooling="max")
    np.testing.assert_allclose(answer.pooled, [rows.max(0) for rows in expected], atol=TOLERANCE)
    first = client.encode("bert", input_ids=SEQUENCES, pooling="first_token", normalize=True).pooled
    np.testing.assert_allclose(first, [rows[0] / np.linalg.norm(rows[0]) for rows in expected], atol=TOLERANCE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.dtype(">f4")])
def test_hidden_states_and_spans_of_layers(client, reference, random, dtype):
    rows = random.standard_normal((1, 5, SMALL.width))
    answer = client.encode("bert", hidden_states=rows.astype(dtype), layers=range(1, 2))
    np.testing.assert_allclose(answer.hidden_states[0], reference.layer(1, rows[0]), atol=TOLERANCE)


def test_arrays_that_do_not_lie_row_by_row(client, reference, random):
    rows = random.standard_normal((SMALL.width, 5, 2)).astype(np.float32)[:, ::-1].transpose(2, 1, 0)
    answer = client.encode("bert", hidden_states=rows)
    np.testing.assert_allclose(answer.hidden_states[1], reference.encode(rows[1].astype(np.float64)), atol=TOLERANCE)
    assert answer.hidden_states.flags.writeable and answer.hidden_states.flags.aligned


def test_half_precision_goes_and_comes(client, reference, random):
    rows = [random.standard_normal((length, SMALL.width)).astype(np.float16) for length in LENGTHS]
    answer = client.encode("bert", hidden_states=rows, pooling="mean")
    assert answer.hidden_states[0].dtype == np.float16 and answer.pooled.dtype == np.float16
    right = reference.encode(rows[2].astype(np.float64))
    np.testing.assert_allclose(answer.hidden_states[2].astype(np.float64), right, atol=3e-3)


def test_bfloat16_output_arrives_as_float32(client, expected):
    answer = client.encode("bert", input_ids=SEQUENCES, output_dtype="bfloat16")
    rows = answer.hidden_states[0]
    assert rows.dtype == np.float32 and not (rows.view(np.uint32) & 0xFFFF).any()
    np.testing.assert_allclose(rows, expected[0], atol=2e-2)


def test_intermediate_layers_and_probabilities_of_a_list(client, reference, expected):
    answer = client.encode("bert", input_ids=SEQUENCES, intermediate_layers=[0, 1], attention_layers=[1])
    assert list(answer.intermediate) == [0, 1] and list(answer.attention_probabilities) == [1]
    for index, sequence in enumerate(SEQUENCES):
        rows = reference.layer(0, reference.embed(np.array(sequence)))
        np.testing.assert_allclose(answer.intermediate[0][index], rows, atol=TOLERANCE)
        np.testing.assert_allclose(answer.attention_probabilities[1][index], reference.probabilities(1, rows), atol=TOLERANCE)


def test_top_keys_of_a_list(client, reference):
    answer = client.encode("bert", input_ids=SEQUENCES, attention_layers=[0], attention_form="top_keys", attention_top_k=3)
    right = reference.probabilities(0, reference.embed(np.array(SEQUENCES[2])))
    keys = answer.attention_keys[0][2]
    assert keys.shape == (SMALL.heads, 7, 3) and keys.dtype == np.int32
    np.testing.assert_allclose(np.take_along_axis(right, keys, -1), answer.attention_probabilities[0][2], atol=TOLERANCE)
    assert answer.attention_keys[0][1][0, 0, 2] == -1


def test_head_mean(client, reference):
    answer = client.encode("bert", input_ids=np.array([SEQUENCES[2]]), attention_layers=[0], attention_form="head_mean")
    right = reference.probabilities(0, reference.embed(np.array(SEQUENCES[2]))).mean(0)
    np.testing.assert_allclose(answer.attention_probabilities[0][0], right, atol=TOLERANCE)


def test_bias_and_gates(client, reference):
    rows = reference.embed(np.array(SEQUENCES[2]))
    bias = np.where(np.arange(7)[:, None] >= np.arange(7), 0.0, -np.inf)
    gates = [1.0, 0.5, 0.0]
    answer = client.encode("bert", input_ids=[SEQUENCES[2]], attention_bias=bias[None, None], head_gates=gates)
    np.testing.assert_allclose(answer.hidden_states[0], reference.encode(rows, bias=bias, gates=gates), atol=TOLERANCE)


def test_query_rows_of_a_list_are_an_array(client, expected):
    answer = client.encode("bert", input_ids=SEQUENCES, query_rows=[12, 0])
    np.testing.assert_allclose(answer.hidden_states, [expected[2][6], expected[0][0]], atol=TOLERANCE)


def test_truncation(client, expected):
    long = [1] * (SMALL.positions + 5)
    answer = client.encode("bert", input_ids=[long, SEQUENCES[1]], truncation="right")
    assert answer.execution.truncated_tokens == 5
    assert answer.hidden_states[0].shape == (SMALL.positions + 5, SMALL.width) and not answer.hidden_states[0][-5:].any()
    np.testing.assert_allclose(answer.hidden_states[1], expected[1], atol=TOLERANCE)


def test_features_with_rows_of_the_models_own(client, random):
    patches = [random.standard_normal((4, 8)).astype(np.float32) for _ in range(2)]
    padded = client.encode("vit", features=np.stack(patches), attention_layers=[0])
    ragged = client.encode("vit", features=patches, attention_layers=[0])
    assert padded.hidden_states.shape == (2, 5, 8) and [rows.shape for rows in ragged.hidden_states] == [(5, 8), (5, 8)]
    np.testing.assert_array_equal(np.stack(ragged.hidden_states), padded.hidden_states)
    np.testing.assert_array_equal(np.stack(ragged.attention_probabilities[0]), padded.attention_probabilities[0])


def test_sequence_without_a_token(client, expected):
    answer = client.encode("bert", input_ids=[[], SEQUENCES[1]], pooling="mean")
    assert answer.hidden_states[0].shape == (0, SMALL.width) and not answer.pooled[0].any()
    np.testing.assert_allclose(answer.hidden_states[1], expected[1], atol=TOLERANCE)


class FakeTensor:
    """As much of a torch tensor as the client uses; `torch` itself is not needed for it."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, f"torch.{dtype}"

    def detach(self):
        return self

    def cpu(self):
        return self

    def contiguous(self):
        return self

    def view(self, dtype):
        assert dtype == "torch's int16"
        return FakeTensor(self.array.view(np.int16), "int16")

    def numpy(self):
        return self.array


FakeTensor.__module__ = "torch"


def test_torch_tensors_are_taken(client, reference, monkeypatch, random):
    rows = random.standard_normal((3, SMALL.width)).astype(np.float32)
    answer = client.encode("bert", hidden_states=[FakeTensor(rows, "float32")])
    np.testing.assert_allclose(answer.hidden_states[0], reference.encode(rows.astype(np.float64)), atol=TOLERANCE)
    fake = type(sys)("torch")
    fake.int16 = "torch's int16"
    monkeypatch.setitem(sys.modules, "torch", fake)
    upper = (rows.view(np.uint32) >> 16).astype(np.uint16)
    exact = (upper.astype(np.uint32) << 16).view(np.float32)
    answer = client.encode("bert", hidden_states=[FakeTensor(upper, "bfloat16")])
    np.testing.assert_allclose(answer.hidden_states[0], reference.encode(exact.astype(np.float64)), atol=2e-2)


REFUSED = [
    ({}, "hidden_states", "exactly one of hidden_states, input_ids, features and texts; got none"),
    ({"input_ids": [[1]], "features": [[1]]}, "hidden_states", "got input_ids and features"),
    ({"input_ids": []}, "input_ids", "at least one sequence"),
    ({"input_ids": [[1.5]]}, "input_ids", "integers or booleans; got float64"),
    ({"input_ids": [[1], [[2]]]}, "input_ids", r"input_ids\[1\]: expected a sequence of shape \[n\]; got int64 \[1, 1\]"),
    ({"hidden_states": [np.zeros((2, 3)), np.zeros((2, 4))]}, "hidden_states", r"\[n, 3\], as in the first one"),
    ({"hidden_states": [["a"]]}, "hidden_states", "an array of numbers"),
    ({"input_ids": [[1, 2]], "attention_mask": [[1]]}, "attention_mask", r"attention_mask\[0\]: expected shape \[2\]; got \[1\]"),
    ({"input_ids": [[1, 2, 3]], "attention_mask": [[1, 0, 1]]}, "attention_mask", "one run of kept tokens"),
    ({"input_ids": [[1]], "attention_mask": [[1], [1]]}, "attention_mask", "one mask for each of 1 sequences; got 2"),
    ({"input_ids": [[1]], "lengths": [1]}, "lengths", "cannot be combined with a list"),
    ({"input_ids": [[1, 2]], "token_type_ids": [[1]]}, "token_type_ids", r"of the lengths \[2\]"),
    ({"input_ids": [[1, 2]], "token_type_ids": np.zeros((1, 2), int)}, "token_type_ids", "a list of 1 sequences"),
    ({"input_ids": [[1]], "pooling": "median"}, "pooling", "one of model, first_token, .*; got 'median'"),
    ({"input_ids": [[1]], "layers": [0, 1]}, "layers", r"a range of layers such as range\(0, 2\); got \[0, 1\]"),
    ({"input_ids": [[1]], "output_dtype": "int8"}, "output_dtype", "float32, float16 or bfloat16; got int8"),
    ({"input_ids": [[1]], "query_rows": [-1]}, "query_rows", "integers from 0; got -1"),
    ({"input_ids": [[1]], "query_rows": [0.5]}, "query_rows", r"a list of integers; got \[0.5\]"),
    ({"input_ids": [[1]], "query_rows": [float("inf")]}, "query_rows", r"a list of integers; got \[inf\]"),
    ({"input_ids": [[1]], "query_rows": []}, "query_rows", "at least one row; got none"),
    ({"input_ids": np.ones((1, 3), int), "lengths": [2.5]}, "lengths", r"a list of integers; got \[2.5\]"),
    ({"input_ids": [[1]], "attention_bias": np.ones((1, 1, 1, 1), bool)}, "attention_bias",
     r"numbers to add to the scores; got booleans; use numpy.where\(keep, 0, -numpy.inf\)"),
]


@pytest.mark.parametrize("options, field, message", REFUSED)
def test_arguments_that_are_refused_before_anything_is_sent(client, options, field, message):
    with pytest.raises(InvalidArgument, match=message) as refused:
        client.encode("bert", **options)
    assert refused.value.field == field
    assert isinstance(refused.value, ValueError)


def test_an_unknown_argument_is_a_type_error(client):
    with pytest.raises(TypeError, match="unexpected argument 'inputs_ids'"):
        client.encode("bert", inputs_ids=[[1]])
