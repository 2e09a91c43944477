"""Fixtures of the tests that need packages of PyPI."""
import os
import pathlib
import sys

import pytest
from attendant_client import Client

pytest.register_assert_rewrite("text_cases")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))

from http_front import run_front  # noqa: E402
from programs import run_server  # noqa: E402
from text_models import write_text_model  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--bin", default=os.environ.get("ATTENDANT_BIN", str(HERE.parents[2] / "build" / "release" / "bin")),
                     help="folder of attendant-server and attendant-client")


@pytest.fixture(scope="session")
def programs(request):
    folder = pathlib.Path(request.config.getoption("--bin"))
    assert (folder / "attendant-server").exists(), f"no attendant-server in {folder}: build it, or name its folder with --bin"
    return folder


@pytest.fixture(scope="session")
def letters(programs, tmp_path_factory):
    """A server of small models that tokenize by letters: an `embedder`, a `classifier` of three classes, and a `reranker`."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("embedder", "classifier", "reranker")}
    write_text_model(folders["embedder"], pooling="mean")
    write_text_model(folders["classifier"], classes=3)
    write_text_model(folders["reranker"], classes=1)
    with run_server(programs, {**folders, "tiny": "synthetic:tiny"}) as running:
        yield running


@pytest.fixture(scope="session")
def client(letters):
    with Client(letters.address) as made:
        yield made


@pytest.fixture(scope="session")
def front(letters):
    with run_front(letters.address) as running:
        yield running
