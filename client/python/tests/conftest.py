"""The server that the tests call. Its programs are in --bin, ATTENDANT_BIN, or build/release/bin of the repository."""
import os
import pathlib

import numpy as np
import pytest
from attendant_client import Client
from bert import MASKED, SMALL, Reference, write_checkpoint
from others import write_fast_weights, write_vit
from programs import run_server
from text_models import run_letters

pytest.register_assert_rewrite("text_cases")
ROOT = pathlib.Path(__file__).resolve().parents[3]


def pytest_addoption(parser):
    parser.addoption("--bin", default=os.environ.get("ATTENDANT_BIN", str(ROOT / "build" / "release" / "bin")),
                     help="folder of attendant-server and attendant-client")


@pytest.fixture(scope="session")
def programs(request):
    folder = pathlib.Path(request.config.getoption("--bin"))
    assert (folder / "attendant-server").exists(), f"no attendant-server in {folder}: build it, or name its folder with --bin"
    return folder


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """The folder of a random BERT with sentence-transformers' pooling, which leaves out its classification head."""
    folder = tmp_path_factory.mktemp("bert")
    write_checkpoint(folder, SMALL)
    return folder


@pytest.fixture(scope="session")
def server(programs, checkpoint, tmp_path_factory):
    """A running server.

    `bert` is the checkpoint. `classifier`, `tagger` and `splade` have its encoder with a classification, a token and an MLM head. `vit` takes features,
    and `fast` takes sequences in parts. `tiny` and `worked-example` are embedded.
    """
    folders = {name: tmp_path_factory.mktemp(name) for name in ("classifier", "tagger", "splade", "vit", "fast")}
    write_checkpoint(folders["classifier"], SMALL, pooling="")
    write_checkpoint(folders["tagger"], SMALL, pooling="", classifies="Token")
    write_checkpoint(folders["splade"], MASKED, pooling="")
    write_vit(folders["vit"])
    write_fast_weights(folders["fast"])
    embedded = {"tiny": "synthetic:tiny", "worked-example": "worked-example"}
    with run_server(programs, {"bert": checkpoint, **folders, **embedded}) as running:
        yield running


@pytest.fixture(scope="session")
def letters(programs, tmp_path_factory):
    with run_letters(programs, tmp_path_factory.mktemp("letters")) as running:
        yield running


@pytest.fixture(scope="session")
def client(server):
    with Client(server.address) as made:
        yield made


@pytest.fixture(scope="session")
def reference():
    return Reference(SMALL)


@pytest.fixture
def random():
    return np.random.default_rng(1)
