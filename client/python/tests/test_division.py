"""More sequences in one call than the server takes in one request."""
import numpy as np
import pytest
from attendant_client import InvalidArgument
from bert import MASKED, SMALL, write_checkpoint
from either_client import call
from programs import run_server

MOST, BATCH = 96, 40


@pytest.fixture(scope="module")
def small(programs, checkpoint, tmp_path_factory):
    """A server whose requests and batches have few tokens, with the models that fit the calls below."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("tagger", "splade")}
    write_checkpoint(folders["tagger"], SMALL, pooling="", classifies="Token")
    write_checkpoint(folders["splade"], MASKED, pooling="")
    with run_server(programs, {"bert": checkpoint, **folders}, "--max-request-tokens", MOST, "--max-batch-tokens", BATCH) as running:
        yield running


def encode(kind, server, *arguments, **options):
    return call(kind, server, "encode", *arguments, **options)


@pytest.fixture
def sequences(random):
    return [random.integers(0, 60, length) for length in random.integers(1, 16, 60)]


CALLS = [("bert", dict(pooling="model", intermediate_layers=[0], attention_layers=[1])),
         ("bert", dict(attention_layers=[0], attention_form="top_keys", attention_top_k=2)),
         ("bert", dict(pooling="mean", normalize=True, return_hidden_states=False)),
         ("tagger", dict(return_token_vectors=True)), ("splade", dict(return_sparse=True, return_hidden_states=False))]


def assert_same(found, expected):
    for name in ("hidden_states", "token_vectors"):
        assert (getattr(found, name) is None) == (getattr(expected, name) is None)
        for one, other in zip(getattr(found, name) or [], getattr(expected, name) or [], strict=True):
            np.testing.assert_array_equal(one, other)
    for name in ("intermediate", "attention_probabilities", "attention_keys"):
        assert getattr(found, name).keys() == getattr(expected, name).keys()
        for layer, rows in getattr(found, name).items():
            for one, other in zip(rows, getattr(expected, name)[layer], strict=True):
                np.testing.assert_array_equal(one, other)
    if expected.pooled is not None:
        np.testing.assert_array_equal(found.pooled, expected.pooled)
    if expected.sparse is not None:
        for name in ("counts", "indices", "weights"):
            np.testing.assert_array_equal(getattr(found.sparse, name), getattr(expected.sparse, name))
    assert found.execution.tokens == expected.execution.tokens


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("model, options", CALLS)
def test_a_list_of_any_length_is_one_call(small, client, sequences, kind, model, options):
    assert sum(map(len, sequences)) > 3 * MOST
    types = [ids % 2 for ids in sequences]
    masks = [np.arange(len(ids)) >= min(1, len(ids) - 1) for ids in sequences]
    beside = dict(token_type_ids=types, attention_mask=masks)
    found = encode(kind, small, model, input_ids=sequences, **beside, **options)
    assert_same(found, client.encode(model, input_ids=sequences, **beside, **options))


def test_so_is_a_generator(small, client, sequences):
    found = encode("sync", small, "bert", input_ids=(ids for ids in sequences), pooling="model")
    assert_same(found, client.encode("bert", input_ids=sequences, pooling="model"))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_so_is_a_padded_array(small, client, random, kind):
    ids = random.integers(0, 60, (40, 12))
    mask = np.arange(12) < random.integers(1, 13, (40, 1))
    found = encode(kind, small, "bert", input_ids=ids, attention_mask=mask, pooling="model")
    expected = client.encode("bert", input_ids=ids, attention_mask=mask, pooling="model")
    np.testing.assert_array_equal(found.hidden_states, expected.hidden_states)
    np.testing.assert_array_equal(found.pooled, expected.pooled)


def test_errors_of_a_part_are_raised(small):
    with pytest.raises(InvalidArgument, match="expected 0..59; got 60"):
        encode("sync", small, "bert", input_ids=[[1] * 12] * 40 + [[60]])


def test_prompts_belong_to_their_sequences(small, client, sequences):
    prompts = [min(2, len(ids) - 1) for ids in sequences]
    options = dict(input_ids=sequences, prompt_tokens=prompts, pooling="mean")
    assert_same(encode("sync", small, "bert", **options), client.encode("bert", **options))


def test_sequences_in_the_servers_cache_are_counted_in_all_requests(programs, checkpoint, sequences):
    with run_server(programs, {"bert": checkpoint}, "--max-request-tokens", MOST, "--cache-bytes", "1MiB") as running:
        first, second = (encode("sync", running, "bert", input_ids=sequences, pooling="mean", return_hidden_states=False)
                         for _ in range(2))
    assert second.execution.cached_sequences == len(sequences)
    assert_same(second, first)
