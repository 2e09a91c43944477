"""Division of Attend requests, and of requests with query_rows, biases or other arguments about rows."""
import numpy as np
import pytest
from attendant_client import Client, InvalidArgument, Memory
from bert import SMALL
from either_client import call
from others import write_clip_vision, write_vit
from programs import run_server

MOST, BATCH = 96, 40
KINDS = ["sync", "async"]


@pytest.fixture(scope="module")
def small(programs, checkpoint, tmp_path_factory):
    vit = tmp_path_factory.mktemp("vit")
    write_vit(vit)
    models = {"bert": checkpoint, "vit": vit}
    with run_server(programs, models, "--max-request-tokens", MOST, "--max-batch-tokens", BATCH) as running:
        yield running


def assert_equal(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list):
        for found, expected in zip(one, other, strict=True):
            assert_equal(found, expected)
    elif one is not None:
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def assert_same(small, client, kind, method, *arguments, **options):
    """Checks that the divided request has the same response as an undivided one."""
    shared = isinstance(options.get("memory"), list)  # which each part has
    found, expected = call(kind, small, method, *arguments, **options), getattr(client, method)(*arguments, **options)
    for name in vars(expected):
        if name == "execution":
            assert shared or found.execution.tokens == expected.execution.tokens
        else:
            assert_equal(getattr(found, name), getattr(expected, name))


def forms(random, sequences=48, longest=15):
    """Hidden states of the same shapes in each form that a request may have, with the rows of the answer."""
    lengths = random.integers(1, longest + 1, sequences)
    lengths[7] = longest
    rows = random.standard_normal((sequences, longest, SMALL.width)).astype(np.float32)
    listed = [one[:length] for one, length in zip(rows, lengths)]
    packed = np.concatenate(listed)
    return {
        "list": (dict(hidden_states=listed), len(packed)),
        "packed": (dict(hidden_states=packed, lengths=lengths), len(packed)),
        "padded": (dict(hidden_states=rows, lengths=lengths), sequences * longest),
        "masked": (dict(hidden_states=rows, attention_mask=np.arange(longest) < lengths[:, None]), sequences * longest),
        "sequence_first": (dict(hidden_states=rows.transpose(1, 0, 2).copy(), lengths=lengths, layout="sequence_first"),
                           sequences * longest),
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["list", "packed", "padded", "masked", "sequence_first"])
@pytest.mark.parametrize("method, outputs", [
    ("encode", dict(pooling="mean", intermediate_layers=[0], attention_layers=[0, 1])),
    ("encode", dict(attention_layers=[1], attention_form="top_keys", attention_top_k=9)),
    ("attend", dict(return_attention_probabilities=True, return_weighted_values=True)),
    ("attend", dict(layer=1, stage="block", return_attention_probabilities=True, attention_form="top_keys", attention_top_k=12)),
    ("attend", dict(return_attention_probabilities=True, attention_form="head_mean")),
])
def test_every_form(small, client, random, kind, form, method, outputs):
    options, rows = forms(random)[form]
    assert rows > max(256, 3 * MOST)
    assert_same(small, client, kind, method, "bert", **options, **outputs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["list", "packed", "padded", "masked", "sequence_first"])
@pytest.mark.parametrize("method", ["encode", "attend"])
def test_query_rows_keep_their_order(small, client, random, kind, form, method):
    options, rows = forms(random)[form]
    few = [rows - 1, 3, 3, rows // 2]  # so that most parts have none
    for wanted in (few, random.permutation(rows)):
        assert_same(small, client, kind, method, "bert", query_rows=wanted, **options)


@pytest.mark.parametrize("form", ["list", "packed", "padded", "sequence_first"])
@pytest.mark.parametrize("method", ["encode", "attend"])
@pytest.mark.parametrize("shape", [
    (48, 1, 15, 15), (48, SMALL.heads, 1, 15), (1, 1, 15, 15), (1, SMALL.heads, 1, 1), (48, 1, 15, 1)])
def test_bias_is_cut_with_its_sequences(small, client, random, form, method, shape):
    options, _ = forms(random)[form]
    bias = random.standard_normal(shape).astype(np.float32)
    assert_same(small, client, "sync", method, "bert", attention_bias=bias, **options)
    assert_same(small, client, "async", method, "bert", attention_bias=bias.tolist(), **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["list", "padded", "packed", "shared"])
def test_memories_go_with_their_queries(small, client, random, kind, form):
    queries, _ = forms(random)["list"]
    lengths = random.integers(1, 9, 48)
    lengths[11] = 8
    rows = random.standard_normal((48, 8, SMALL.width)).astype(np.float32)
    listed = [one[:length] for one, length in zip(rows, lengths)]
    values = [random.standard_normal(one.shape).astype(np.float32) for one in listed]
    memory = {"list": Memory(listed, values=values), "padded": Memory(rows, attention_mask=np.arange(8) < lengths[:, None]),
              "packed": Memory(np.concatenate(listed), lengths=lengths), "shared": [rows[0]]}[form]
    bias = random.standard_normal((48, 1, 15, 8)).astype(np.float32)
    for outputs in (dict(), dict(attention_form="top_keys", attention_top_k=7)):
        assert_same(small, client, kind, "attend", "bert", memory=memory, attention_bias=bias, return_attention_probabilities=True,
                    **queries, **outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_registered_memory_of_one_sequence_serves_all_parts(small, random, kind):
    queries, _ = forms(random)["list"]
    memory = [random.standard_normal((6, SMALL.width)).astype(np.float32)]
    given = call(kind, small, "attend", "bert", memory=memory, **queries)
    handle = call(kind, small, "put_memory", "bert", memory=memory).handle
    assert_equal(call(kind, small, "attend", "bert", memory_handle=handle, **queries).output, given.output)


def test_one_of_several_is_refused_as_parts_might_meet_the_wrong_ones(small, random):
    memory = [random.standard_normal((6, SMALL.width)).astype(np.float32)] * 2
    handle = call("sync", small, "put_memory", "bert", memory=memory).handle
    rows = [random.standard_normal((20, SMALL.width)).astype(np.float32)] * 20  # two fit into a part
    with pytest.raises(InvalidArgument, match="memory: expected 1 or B = 1 sequences; got 2"):
        call("sync", small, "attend", "bert", memory_handle=handle, hidden_states=rows)


def test_features_have_rows_of_the_model(small, client, random):
    count = client.model("vit").front.features or 9
    own = client.model("vit").front.own_rows
    width = client.model("vit").front.feature_width
    features = random.standard_normal((300 // count + 3, count, width)).astype(np.float32)
    wanted = random.permutation(len(features) * (count + own))[:40]
    bias = random.standard_normal((len(features), 1, 1, count + own)).astype(np.float32)
    assert own > 0
    assert_same(small, client, "sync", "encode", "vit", features=features, query_rows=wanted, attention_bias=bias)
    assert_same(small, client, "sync", "encode", "vit", features=list(features), query_rows=wanted, attention_layers=[0])


def test_features_are_counted_with_the_rows_of_the_model(programs, client, random, tmp_path):
    write_vit(tmp_path)
    features = random.standard_normal((80, 4, 8)).astype(np.float32)
    with run_server(programs, {"vit": tmp_path}, "--max-request-tokens", 320) as running:
        assert_same(running, client, "sync", "encode", "vit", features=features)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [8, 11])  # the last lines of 11 belong to no patch
def test_images_are_divided(programs, random, tmp_path, kind, size):
    write_clip_vision(tmp_path, size)
    images = random.standard_normal((80, 3, size, size)).astype(np.float32)
    options = dict(features=images, query_rows=[399, 0, 203], intermediate_layers=[0], attention_layers=[0])
    with run_server(programs, {"clip": tmp_path}, "--max-request-tokens", 96) as running:
        with run_server(programs, {"clip": tmp_path}) as other, Client(other.address) as whole:
            assert_same(running, whole, kind, "encode", "clip", **options)
            assert_same(running, whole, kind, "encode", "clip", **{**options, "features": list(images)})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [(0, 60, 60, 60, 60, 60), (60, 0, 60, 60, 0, 60, 60), (60, 60, 60, 60, 60, 0, 0)])
def test_empty_sequences_share_a_part(small, client, random, kind, lengths):
    rows = [random.standard_normal((length, SMALL.width)).astype(np.float32) for length in lengths]
    assert_same(small, client, kind, "encode", "bert", hidden_states=rows, pooling="mean")
    assert_same(small, client, kind, "attend", "bert", hidden_states=rows, query_rows=[299, 0])


def test_answers_fit_their_limit(programs, checkpoint, client, random):
    ids = random.integers(0, 60, (40, 12))
    with run_server(programs, {"bert": checkpoint}, "--max-answer-bytes", 80 << 10) as running:
        assert_same(running, client, "sync", "encode", "bert", input_ids=ids, attention_layers=[0, 1])
        assert_same(running, client, "sync", "encode", "bert", input_ids=ids, intermediate_layers=[0, 1])


def test_biases_fit_their_limit(programs, checkpoint, client, random):
    ids = random.integers(0, 60, (16, 40))
    bias = random.standard_normal((16, SMALL.heads, 40, 40)).astype(np.float32)
    with run_server(programs, {"bert": checkpoint}, "--max-request-tokens", ids.size) as running:
        with Client(running.address) as other:
            assert other.model().limits.max_request_bytes < bias.nbytes
        assert_same(running, client, "sync", "encode", "bert", input_ids=ids, attention_bias=bias)


@pytest.mark.parametrize("wrong, message", [
    (dict(query_rows=[0, 480]), r"query_rows\[1\]: expected 0..479; got 480"),
    (dict(query_rows=[-1]), "query_rows: expected integers from 0; got -1"),
    (dict(attention_bias=np.zeros((40, 1, 12, 13))),
     r"attention_bias: expected shape \[40, H, 12, 12\] or 1 in places; got \[40, 1, 12, 13\]"),
    (dict(attention_bias=np.zeros((40, 12, 12))), r"attention_bias: expected shape \[40, H, 12, 12\] or 1 in places"),
    (dict(attention_bias=[1.0]), r"attention_bias: expected shape \[40, H, 12, 12\] or 1 in places; got \[1\]"),
    (dict(attention_bias=[[1.0], [1.0, 2.0]]), "attention_bias: expected an array with rows of equal length"),
    (dict(query_rows=3), "query_rows: expected a list of integers; got 3"),
    (dict(lengths=12), "lengths: expected one for each of 40 sequences; got 12"),
    (dict(attention_mask=np.ones((41, 12), bool)), "attention_mask: expected one for each of 40 sequences; got 41"),
    (dict(lengths=[12] * 41), "lengths: expected one for each of 40 sequences; got 41"),
    (dict(prompt_tokens=[1] * 41, pooling="mean"), "prompt_tokens: expected one for each of 40 sequences; got 41"),
    (dict(attention_layers=[0], attention_form="top_keys", attention_top_k=13), "attention_top_k: expected 1..12; got 13"),
])
def test_what_does_not_fit_all_sequences_is_refused(small, wrong, message):
    with pytest.raises(InvalidArgument, match=message):
        call("sync", small, "encode", "bert", input_ids=np.ones((40, 12), int), **wrong)


def test_memories_that_do_not_fit_are_refused(small, random):
    rows = [random.standard_normal((12, SMALL.width)).astype(np.float32)] * 40
    with pytest.raises(InvalidArgument, match="memory.lengths: expected one for each of 40 sequences; got 41"):
        call("sync", small, "attend", "bert", hidden_states=rows, memory=Memory(np.stack(rows), lengths=[12] * 41))
