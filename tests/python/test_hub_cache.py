"""attendant-server and the Hugging Face Hub's own library share a cache: each takes what the other has brought."""
import os
import pathlib
import subprocess
import sys

import huggingface_hub
import pytest
from huggingface_hub.utils import WeakFileLock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "support"), str(ROOT / "client" / "python" / "tests")]

import bert  # noqa: E402
from fake_hub import FakeHub  # noqa: E402

REPOSITORY = "org/tiny"


@pytest.fixture
def hub(tmp_path):
    folder = tmp_path / "hub" / REPOSITORY
    folder.mkdir(parents=True)
    bert.write_checkpoint(folder, bert.SMALL)
    (folder / "README.md").write_text("not needed")
    (folder / "pytorch_model.bin").write_bytes(b"not needed")
    made = FakeHub(tmp_path / "hub")
    yield made
    made.close()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def pull(request, hub, cache):
    """A function that starts --pull with further flags."""
    server = pathlib.Path(request.config.getoption("--bin")) / "attendant-server"

    def start(*flags):
        return subprocess.Popen([server, "--pull", REPOSITORY, "--model-cache", cache, *flags], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env={"PATH": os.environ["PATH"], "HOME": str(cache), "HF_ENDPOINT": hub.endpoint})
    return start


def pulled(process):
    """Returns the folder that it prints."""
    out, log = process.communicate(timeout=60)
    assert process.returncode == 0, log
    return pathlib.Path(out.rstrip("\n"))


def download(hub, cache, **options):
    return pathlib.Path(huggingface_hub.snapshot_download(REPOSITORY, endpoint=hub.endpoint, cache_dir=cache, **options))


def bodies(hub):
    """What was sent of files, not of lists."""
    return [request["path"] for request in hub.requests if request["method"] == "GET" and "/api/" not in request["path"]]


def test_the_library_finds_what_the_server_has_pulled(hub, cache, pull):
    folder = pulled(pull())
    assert download(hub, cache, local_files_only=True) == folder
    weights = huggingface_hub.hf_hub_download(REPOSITORY, "model.safetensors", cache_dir=cache, local_files_only=True)
    assert pathlib.Path(weights).read_bytes() == (hub.folder / REPOSITORY / "model.safetensors").read_bytes()
    found = huggingface_hub.scan_cache_dir(cache)
    assert not found.warnings
    [repository] = found.repos
    assert repository.repo_id == REPOSITORY and list(repository.refs) == ["main"]
    hub.requests.clear()
    assert download(hub, cache) == folder  # what is left, and that alone
    assert not any("model.safetensors" in path or "config.json" in path for path in bodies(hub))
    assert (folder / "README.md").exists()


def test_the_server_finds_what_the_library_has_pulled(hub, cache, pull):
    folder = download(hub, cache)
    hub.requests.clear()
    assert pulled(pull()) == folder
    assert len(hub.requests) == 1 and not bodies(hub)
    hub.requests.clear()
    assert pulled(pull("--offline")) == folder
    assert not hub.requests


def test_the_server_completes_what_the_library_has_begun(hub, cache, pull):
    folder = download(hub, cache, allow_patterns=["config.json"])
    process = pull("--offline")
    log = process.communicate(timeout=60)[1]
    assert process.returncode == 1 and "not complete in the cache" in log
    hub.requests.clear()
    assert pulled(pull()) == folder
    assert not any(path.endswith(f"/{folder.name}/config.json") for path in bodies(hub))
    assert pulled(pull("--offline")) == folder


def test_the_server_waits_for_the_library(hub, cache, pull):
    etag = pulled(pull()).joinpath("model.safetensors").resolve().name
    blob = cache / "models--org--tiny" / "blobs" / etag
    blob.unlink()
    with WeakFileLock(cache / ".locks" / "models--org--tiny" / f"{etag}.lock"):
        process = pull()
        while "waiting for another process" not in (line := process.stderr.readline()):
            assert line, "the server has not waited"
    pulled(process)
    assert blob.exists()
