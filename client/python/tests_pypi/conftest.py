"""Fixtures of the tests that need packages of PyPI."""
import os
import pathlib
import sys

import pytest

pytest.register_assert_rewrite("text_cases")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))


def pytest_addoption(parser):
    parser.addoption("--bin", default=os.environ.get("ATTENDANT_BIN", str(HERE.parents[2] / "build" / "release" / "bin")),
                     help="folder of attendant-server and attendant-client")


@pytest.fixture(scope="session")
def programs(request):
    folder = pathlib.Path(request.config.getoption("--bin"))
    assert (folder / "attendant-server").exists(), f"no attendant-server in {folder}: build it, or name its folder with --bin"
    return folder
