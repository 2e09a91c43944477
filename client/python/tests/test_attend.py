"""Attend and registered memories, compared with float64 formulas."""
import numpy as np
import pytest
from attendant_client import InvalidArgument, Memory, NotFound
from bert import SMALL

TOLERANCE = 2e-5


@pytest.fixture
def sequences(random):
    return [random.standard_normal((length, SMALL.width)).astype(np.float32) for length in (3, 6)]


def test_worked_example(client):
    values = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
    output = client.attend("worked-example", hidden_states=[values]).output[0]
    np.testing.assert_allclose(output[0], [1.93662, 6.68310, 1.59506], atol=1e-5)


@pytest.mark.parametrize("stage", ["context", "projected", "block"])
@pytest.mark.parametrize("layer", [0, 1])
def test_stages(client, reference, sequences, stage, layer):
    answer = client.attend("bert", layer=layer, stage=stage, hidden_states=sequences)
    for rows, sequence in zip(answer.output, sequences):
        np.testing.assert_allclose(rows, getattr(reference, stage)(layer, sequence.astype(np.float64)), atol=TOLERANCE)


def test_probabilities_and_weighted_values(client, reference, sequences):
    answer = client.attend("bert", hidden_states=sequences, return_attention_probabilities=True, return_weighted_values=True)
    for found, sequence in zip(answer.attention_probabilities, sequences):
        np.testing.assert_allclose(found, reference.probabilities(0, sequence.astype(np.float64)), atol=TOLERANCE)
    assert answer.weighted_values.shape == (2, SMALL.heads, 6, 6, SMALL.width // SMALL.heads)
    heads = answer.weighted_values[1].sum(1).transpose(1, 0, 2).reshape(6, SMALL.width)
    np.testing.assert_allclose(heads, answer.output[1], atol=TOLERANCE)


def test_stages_of_the_embedded_model_lead_to_its_layers(client, random):
    """What Attend answers of synthetic:tiny is what Encode computes inside its layers."""
    rows = random.standard_normal((2, 5, 32)).astype(np.float32)
    layers = client.encode("tiny", hidden_states=rows, intermediate_layers=[0], attention_layers=[1])
    attended = client.attend("tiny", layer=1, hidden_states=layers.intermediate[0], return_attention_probabilities=True)
    np.testing.assert_array_equal(attended.attention_probabilities, layers.attention_probabilities[1])
    again = client.encode("tiny", hidden_states=layers.intermediate[0], layers=range(1, 2))
    np.testing.assert_array_equal(again.hidden_states, layers.hidden_states)


def cross_attention(reference, rows, memory):
    queries = reference._heads(0, "query", rows)
    keys, values = (reference._heads(0, part, memory) for part in ("key", "value"))
    scores = np.exp(queries @ keys.transpose(0, 2, 1) / np.sqrt(queries.shape[-1]))
    return (scores / scores.sum(-1, keepdims=True) @ values).transpose(1, 0, 2).reshape(len(rows), -1)


def test_memory_of_unequal_lengths(client, reference, sequences, random):
    memories = [random.standard_normal((length, SMALL.width)).astype(np.float32) for length in (4, 1)]
    answer = client.attend("bert", hidden_states=sequences, memory=memories, return_attention_probabilities=True)
    for rows, sequence, memory in zip(answer.output, sequences, memories):
        right = cross_attention(reference, sequence.astype(np.float64), memory.astype(np.float64))
        np.testing.assert_allclose(rows, right, atol=TOLERANCE)
    assert answer.attention_probabilities.shape == (2, SMALL.heads, 6, 4)


def test_memory_with_a_mask_and_values(client, reference, sequences, random):
    rows = random.standard_normal((1, 4, SMALL.width)).astype(np.float32)
    memory = Memory(rows, attention_mask=np.array([[1, 1, 0, 0]]), values=rows)
    answer = client.attend("bert", hidden_states=sequences, memory=memory)
    right = cross_attention(reference, sequences[0].astype(np.float64), rows[0, :2].astype(np.float64))
    np.testing.assert_allclose(answer.output[0], right, atol=TOLERANCE)


def test_registered_memory(client, sequences, random):
    rows = random.standard_normal((1, 4, SMALL.width)).astype(np.float32)
    registered = client.put_memory("bert", layer=0, memory=rows, time_to_live=60)
    assert registered.bytes > 0
    with_handle = client.attend("bert", hidden_states=sequences, memory_handle=registered.handle)
    with_rows = client.attend("bert", hidden_states=sequences, memory=rows)
    np.testing.assert_array_equal(with_handle.output[1], with_rows.output[1])
    assert client.drop_memory(registered.handle) == registered.bytes
    with pytest.raises(NotFound):
        client.drop_memory(registered.handle)


def test_refusals(client):
    with pytest.raises(InvalidArgument, match="hidden_states: expected an array or a list of arrays; got none"):
        client.attend("bert")
    with pytest.raises(InvalidArgument, match="stage: expected one of context, projected, block; got 'heads'"):
        client.attend("bert", hidden_states=np.zeros((1, 1, 24)), stage="heads")


def test_the_lowest_number_masks_like_infinity(client, random):
    rows = random.standard_normal((2, 3, SMALL.width)).astype(np.float32)
    for masked in (-np.inf, np.finfo(np.float32).min, -2.41e38):
        assert not client.attend("bert", hidden_states=rows, attention_bias=np.full((1, 1, 1, 1), masked, np.float32)).output.any()
