"""Pushes the image to a registry on this machine, as a release does to ghcr.io."""
import base64
import contextlib
import hashlib
import json
import pathlib
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from container_run import Failed
from ports import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACCOUNT, TOKEN = "someone", "token-of-a-test"
HASHED = "$2b$04$gO94jtTS.uAq3SFMTKE1UOgS9AKKoGo6JrxNbvvbBlR/yxPCFGj66"  # of TOKEN, by bcrypt
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def ask(url: str, kind: str = "application/json") -> bytes:
    credentials = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
    request = urllib.request.Request(url, headers={"Authorization": f"Basic {credentials}", "Accept": kind})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


@contextlib.contextmanager
def registry(work: pathlib.Path):
    """Runs Debian's docker-registry, which lets one account in, and yields its host and port."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    host = f"127.0.0.1:{free_port()}"
    (work / "accounts").write_text(f"{ACCOUNT}:{HASHED}\n")
    (work / "config.json").write_text(json.dumps({  # which is YAML too
        "version": "0.1", "storage": {"filesystem": {"rootdirectory": str(work / "storage")}}, "http": {"addr": host},
        "auth": {"htpasswd": {"realm": "test", "path": str(work / "accounts")}}}))
    with (work / "log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(["docker-registry", "serve", work / "config.json"], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                ask(f"http://{host}/v2/")
                break
            except urllib.error.URLError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise Failed(f"the registry did not start: {error}; see {work / 'log'}") from error
                time.sleep(0.05)
        yield host
    finally:
        process.kill()
        process.wait()


def small_image(storage: dict, name: str, architecture: str, contents: pathlib.Path | None = None) -> str:
    """Makes an image with this list of contents, or with no file, and returns its name."""

    def buildah(*arguments) -> str:
        return subprocess.run(["buildah", *arguments], stdout=subprocess.PIPE, text=True, env=storage, check=True).stdout.strip()

    container = buildah("from", "scratch")
    if contents is not None:
        buildah("copy", "--quiet", container, contents, "/usr/share/doc/attendant/attendant.spdx.json")
    buildah("config", "--arch", architecture, container)
    buildah("commit", "--quiet", "--rm", "--format", "docker", container, name)
    return name


def tags_of(repository: str) -> dict[str, str]:
    """Returns the digest of each tag that the registry has."""
    base = f"http://{repository.replace('/', '/v2/', 1)}"
    return {tag: f"sha256:{hashlib.sha256(ask(f'{base}/manifests/{tag}', MANIFEST)).hexdigest()}"
            for tag in json.loads(ask(f"{base}/tags/list"))["tags"]}


def check_push(name: str, storage: dict, work: pathlib.Path) -> str:
    """`storage` is buildah's environment. What the script says of the image has to be what the registry has."""
    with registry(work) as host:
        outputs, files = work / "outputs", work / "files"
        environment = storage | {"HOME": str(work), "IMAGE_REPOSITORY": f"{host}/Owner/Attendant", "GITHUB_ACTOR": ACCOUNT,
                                 "GITHUB_OUTPUT": str(outputs)}

        def push(image: str, token: str):
            return subprocess.run([ROOT / "docker/push_image.sh", image, files, "--tls-verify=false"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=environment | {"REGISTRY_TOKEN": token}, check=False)

        empty = small_image(storage, "localhost/attendant-test-empty", "amd64")
        for image, token, reason in ((name, "wrong", "logging into"), (empty, TOKEN, "got no such file")):
            refused = push(image, token)
            if refused.returncode == 0 or reason not in refused.stderr or outputs.exists():
                raise Failed(f"{image} with the token {token!r}: expected {reason!r}; exit code {refused.returncode}: {refused.stderr[-300:]}")
        done = push(name, TOKEN)
        if done.returncode != 0:
            raise Failed(f"push_image.sh: exit code {done.returncode}: {done.stderr[-400:]}")
        said = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        repository = f"{host}/owner/attendant"
        if said != {"repository": repository, "digest": said["digest"], "image": done.stdout.strip()}:
            raise Failed(f"outputs {said}; printed {done.stdout!r}")
        pushed = tags_of(repository)
        if len(pushed) != 2 or "latest" not in pushed or set(pushed.values()) != {said["digest"]}:
            raise Failed(f"the registry has {pushed}; printed {said['digest']}")
        done = push(small_image(storage, "localhost/attendant-test-arm64", "arm64", files / "attendant.spdx.json"), TOKEN)
        both, digest = tags_of(repository), done.stdout.strip().rpartition("@")[2]
        if done.returncode != 0 or both != pushed | {f"{tag}-arm64": digest for tag in pushed} or digest == said["digest"]:
            raise Failed(f"with an image for arm64 the registry has {both}; printed {done.stdout!r}: {done.stderr[-400:]}")
        if not (files / "attendant-arm64.spdx.json").exists():
            raise Failed("no attendant-arm64.spdx.json")
    described = len(json.loads((files / "attendant.spdx.json").read_text())["packages"])
    return f"{' and '.join(sorted(pushed))} are {said['digest'][:19]}; its SBOM has {described} packages"
