"""Sparse vectors over the vocabulary, compared with float64 formulas, and answers that hold unsound ones."""
import numpy as np
import pytest
from attendant_client import Client, Internal, InvalidArgument, encode_request, messages
from bert import MASKED, Reference
from fake_server import serve

TOLERANCE = 2e-5
SEQUENCES = [[2, 7, 1, 8], [2, 8], [1, 8, 2, 8, 4, 5, 9]]


@pytest.fixture(scope="module")
def expected():
    reference = Reference(MASKED)
    return [reference.sparse_vector(reference.encode(reference.embed(np.array(sequence)))) for sequence in SEQUENCES]


def test_sparse_vectors(client, expected):
    assert client.model("splade").sparse_width == MASKED.vocabulary
    answer = client.encode("splade", input_ids=SEQUENCES, return_sparse=True, return_hidden_states=False)
    assert answer.hidden_states is None
    np.testing.assert_allclose(answer.sparse.to_dense(MASKED.vocabulary), expected, atol=TOLERANCE)
    assert len(answer.sparse) == 3 and answer.sparse.counts.sum() == len(answer.sparse.indices)
    for (indices, weights), right in zip(answer.sparse, expected):
        np.testing.assert_array_equal(indices, np.flatnonzero(right))
        np.testing.assert_allclose(weights, right[indices], atol=TOLERANCE)
    indices, weights = answer.sparse[-1]
    np.testing.assert_allclose(weights, expected[2][indices], atol=TOLERANCE)
    with pytest.raises(IndexError):
        answer.sparse[3]


def test_padding_weighs_nothing(client, expected):
    ids = np.zeros((3, 7), int)
    for row, sequence in enumerate(SEQUENCES):
        ids[row, :len(sequence)] = sequence
    answer = client.encode("splade", input_ids=ids, lengths=[4, 2, 7], return_sparse=True)
    np.testing.assert_allclose(answer.sparse.to_dense(MASKED.vocabulary), expected, atol=TOLERANCE)


def test_in_a_stream(client, expected):
    requests = [encode_request("splade", input_ids=[sequence], return_sparse=True) for sequence in SEQUENCES]
    for answer in client.encode_stream(requests):
        vector = answer.result().sparse.to_dense(MASKED.vocabulary)[0]
        np.testing.assert_allclose(vector, expected[answer.index], atol=TOLERANCE)


def test_nothing_unless_asked_for(client):
    assert client.encode("splade", input_ids=SEQUENCES).sparse is None


def test_a_model_without_the_head(client):
    with pytest.raises(InvalidArgument) as refused:
        client.encode("bert", input_ids=SEQUENCES, return_sparse=True)
    assert refused.value.field == "return_sparse"


def sparse(counts, indices, weights, dtype=messages.INT32):
    stored = np.asarray(indices, "<i4" if dtype == messages.INT32 else "<i8")
    return messages.SparseVectors(
        counts=counts,
        indices=messages.Tensor(dtype=dtype, shape=stored.shape, data=stored.tobytes()),
        weights=messages.Tensor(dtype=messages.FLOAT32, shape=[len(weights)], data=np.asarray(weights, "<f4").tobytes()))


def answer_with(vectors):
    answer = messages.EncodeResponse(sparse=vectors).SerializeToString()
    with serve({"Encode": lambda *_: answer}) as address, Client(address) as client:
        return client.encode(input_ids=[[1]]).sparse


@pytest.mark.parametrize("counts", [[0, 2, 0, 1, 0], [3], [1, 1, 1]])
def test_sound_answers(counts):
    vectors = answer_with(sparse(counts, [1, 4, 5], [0.5, 1, 2]))
    assert vectors.counts.tolist() == counts
    assert [len(indices) for indices, _ in vectors] == counts


def test_an_answer_of_zeros():
    vectors = answer_with(sparse([0, 0], [], []))
    assert vectors.to_dense(4).tolist() == [[0] * 4] * 2


@pytest.mark.parametrize("vectors", [
    sparse([4], [1, 4, 5], [0.5, 1, 2]), sparse([], [1], [0.5]), sparse([-1, 4], [1, 4, 5], [0.5, 1, 2]),
    sparse([3], [1, 4, 5], [0.5, 1]), sparse([3], [1, 4, 4], [0.5, 1, 2]), sparse([1, 2], [3, 4, 1], [0.5, 1, 2]),
    sparse([3], [-1, 4, 5], [0.5, 1, 2]), sparse([1, 2], [1, -4, 5], [0.5, 1, 2]),
    sparse([2], [1, 4], [0.5, 1], dtype=messages.INT64), messages.SparseVectors(counts=[0]),
    messages.SparseVectors(counts=[1], indices=messages.Tensor(dtype=messages.INT32, shape=[1], data=b"123"),
                           weights=messages.Tensor(dtype=messages.FLOAT32, shape=[1], data=b"1234")),
], ids=lambda vectors: str(list(vectors.counts)))
def test_unsound_answers(vectors):
    with pytest.raises(Internal, match="the response has"):
        answer_with(vectors)
