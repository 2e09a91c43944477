"""Scores of classes and dimensions of vectors."""
import numpy as np
import pytest
from attendant_client import InvalidArgument, messages
from attendant_client.text import scores
from attendant_client.text.rows import cut


@pytest.mark.parametrize("function", [messages.SCORES_SIGMOID, messages.SCORES_UNKNOWN])
def test_scores_of_a_class_alone_are_sigmoids(function):
    made = scores.apply(function, np.array([[0.0], [1000.0], [-1000.0], [2.0]], np.float32))
    np.testing.assert_allclose(made[:, 0], [0.5, 1.0, 0.0, 1 / (1 + np.exp(-2.0))])


@pytest.mark.parametrize("function", [messages.SCORES_SOFTMAX, messages.SCORES_UNKNOWN])
def test_scores_of_several_classes_are_a_softmax(function):
    made = scores.apply(function, np.array([[1.0, 1.0], [1000.0, 0.0], [0.0, np.log(3.0)]]))
    np.testing.assert_allclose(made, [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])


def test_scores_of_classes_of_which_several_may_be_true_are_sigmoids():
    made = scores.apply(messages.SCORES_SIGMOID, np.array([[0.0, np.log(3.0), -1000.0]]))
    np.testing.assert_allclose(made, [[0.5, 0.75, 0.0]])


def test_plain_scores_stay():
    np.testing.assert_array_equal(scores.apply(messages.SCORES_PLAIN, np.array([[3.5], [-2.0]], np.float32)), [[3.5], [-2.0]])


def test_equal_scores_keep_their_order():
    assert [one.index for one in scores.ranking([1.0, 2.0, 1.0, 2.0], list("abcd"), None)] == [1, 3, 0, 2]
    assert [one.label for one in scores.label_scores(np.array([[1.0, 1.0, 2.0]]), ["x", "y", "z"])[0]] == ["z", "x", "y"]


@pytest.mark.parametrize("named, expected", [([], ["LABEL_1", "LABEL_0"]), (["a"], ["LABEL_1", "a"]), (["a", "b", "c"], ["b", "a"])])
def test_labels_have_numbers_where_the_checkpoint_names_none(named, expected):
    assert [one.label for one in scores.label_scores(np.array([[1.0, 2.0]]), named)[0]] == expected


def test_cut_vectors_have_length_1_if_they_had():
    rows = np.array([[0.6, 0.8, 0.0], [3.0, 4.0, 12.0]], np.float32)
    made = cut(rows, 2)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, [[0.6, 0.8], [3.0, 4.0]], rtol=1e-6)
    np.testing.assert_allclose(cut(rows, 1), [[1.0], [3.0]], rtol=1e-6)
    np.testing.assert_array_equal(cut(np.array([[0.0, 0.0, 1.0]], np.float32), 2), [[0.0, 0.0]])
    assert cut(rows, None) is rows
    with pytest.raises(InvalidArgument, match=r"dimensions: expected 1\.\.3"):
        cut(rows, 4)
