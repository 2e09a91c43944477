"""A small Hugging Face Hub of local files, which speaks as much of the real one's interface as pulling models takes, and
fails as it is told to.

    fake_hub.py FOLDER [CERTIFICATE KEY]

FOLDER/ORG/REPO has the files of the revision main; whatever was asked for once can be asked for by its commit. Files of
safetensors are those of Git LFS: the Hub redirects to a second port, as the real one does to its CDN. Prints the URLs of
both, a line each, then takes commands, a line of JSON each, and answers each with a line:

    {"set": {"token": "t", "private": ["ORG/REPO"]}}        see FakeHub; "done"
    {"fail": {"path": "model", "times": 1, "status": 503}}  see Fault; "done"
    {"release": true}                                       lets held answers go on; "done"
    {"values": ["range", "model"]}                          one value of each request so far whose path has that part: their
                                                            number, then a line for each
"""
import dataclasses
import hashlib
import http.server
import json
import pathlib
import re
import ssl
import sys
import threading
import urllib.parse


@dataclasses.dataclass
class Fault:
    """Something that goes wrong with requests whose "hub/PATH" or "cdn/PATH" the expression finds."""
    path: str
    times: int = 1 << 30
    status: int = 0                # answer this, with `headers`
    headers: dict = dataclasses.field(default_factory=dict)
    body: str = ""
    cut: int = -1                  # close the connection after as many bytes of the body
    corrupt: bool = False          # another first byte
    short: int = 0                 # as many bytes are missing from the end, also of Content-Length
    extra: int = 0                 # as many bytes more
    hold: bool = False             # send half, then wait until it is released
    ignores_range: bool = False    # answer 200 with the whole


class FakeHub:
    def __init__(self, folder, certificate=None, key=None):
        self.folder = pathlib.Path(folder)
        self.token = ""            # of who may read private and gated repositories
        self.private = []
        self.gated = []
        self.revisions = ["main"]  # all name the same commit
        self.lists_digests = True  # False: only names, as some mirrors do
        self.size = {}             # by path: a size that is listed in place of the true one
        self.redirect = ""         # where files of Git LFS are, in place of the CDN
        self.faults, self.requests, self.commits = [], [], {}
        self.released = threading.Event()
        self.lock = threading.Lock()
        self.scheme = "https" if certificate else "http"
        self.servers = {name: self._serve(name, certificate, key) for name in ("hub", "cdn")}
        self.endpoint = self.url("hub")

    def url(self, name):
        return f"{self.scheme}://127.0.0.1:{self.servers[name].server_address[1]}"

    def _serve(self, name, certificate, key):
        handler = type("Handler", (_Handler,), {"hub": self, "name": name})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # callers who leave, or whom the certificate does not convince
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def close(self):
        self.released.set()
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def fail(self, **fault):
        with self.lock:
            self.faults.append(Fault(**fault))

    def take_fault(self, path):
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return Fault("")

    def files(self, repository):
        """Returns (commit, {path: bytes}); None if there is no such repository."""
        folder = self.folder / repository
        if not folder.is_dir():
            return None
        found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        commit = hashlib.sha1(repr([(path, digest(path, data)) for path, data in found.items()]).encode()).hexdigest()
        self.commits[repository, commit] = found
        return commit, found


def is_lfs(path):
    return path.endswith((".safetensors", ".bin", ".onnx"))


def blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def digest(path, data):
    return hashlib.sha256(data).hexdigest() if is_lfs(path) else blob_id(data)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub
    name: str

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = urllib.parse.unquote(self.path)
        with self.hub.lock:
            self.hub.requests.append({"request": f"{self.name} {self.command} {self.path}", "path": self.path,
                                      "method": self.command,
                                      "authorization": self.headers.get("Authorization", ""),
                                      "range": self.headers.get("Range", ""),
                                      "agent": self.headers.get("User-Agent", "")})
        self.fault = self.hub.take_fault(f"{self.name}{path}")
        if self.fault.status:
            return self.answer(self.fault.status, self.fault.body.encode(), self.fault.headers)
        if self.name == "cdn":
            return self.send_file(*self.server_files()[path.split("?")[0][1:]])
        if match := re.fullmatch(r"/api/models/(.+?)/(revision|tree)/([^?]+)(?:\?(.*))?", path):
            return self.send_list(*match.groups())
        if match := re.fullmatch(r"/api/models/([^?]+)", path):
            return self.send_list(match[1], "revision", "main", "")
        if match := re.fullmatch(r"/(.+?)/resolve/([0-9a-f]{40}|main)/(.+)", path):
            return self.resolve(*match.groups())
        self.answer(404, b"", {})

    def server_files(self):
        """All files of Git LFS by their digests."""
        return {digest(path, data): (data, digest(path, data)) for files in self.hub.commits.values()
                for path, data in files.items()}

    def find(self, repository, revision):
        """Returns (commit, files), or answers with an error."""
        found = self.hub.files(repository)
        allowed = self.hub.token and self.headers.get("Authorization") == f"Bearer {self.hub.token}"
        if not found or (repository in self.hub.private and not allowed):
            self.answer(401 if not allowed else 404, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif revision in self.hub.revisions or revision == found[0]:
            return found
        elif (repository, revision) in self.hub.commits:
            return revision, self.hub.commits[repository, revision]
        else:
            self.answer(404, b"", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": f"Invalid rev id: {revision}"})
        return None

    def send_list(self, repository, kind, revision, query):
        found = self.find(repository, revision)
        if not found:
            return
        commit, files = found
        blobs = "blobs=true" in (query or "").lower() and self.hub.lists_digests
        siblings, tree = [], []
        for path, data in files.items():
            size = self.hub.size.get(path, len(data))
            lfs = {"size": size, "pointerSize": 130} if is_lfs(path) else None
            sha256 = hashlib.sha256(data).hexdigest()
            siblings.append({"rfilename": path} | ({"size": size, "blobId": blob_id(data)} if blobs else {})
                            | ({"lfs": lfs | {"sha256": sha256}} if lfs and blobs else {}))
            tree.append({"type": "file", "path": path, "size": size, "oid": blob_id(data)}
                        | ({"lfs": lfs | {"oid": sha256}} if lfs else {}))
        listed = {"id": repository, "modelId": repository, "sha": commit, "private": False, "tags": [], "downloads": 0,
                  "likes": 0, "siblings": siblings}
        self.answer(200, json.dumps(tree if kind == "tree" else listed).encode(), {"Content-Type": "application/json"})

    def resolve(self, repository, revision, path):
        found = self.find(repository, revision)
        if not found:
            return None
        commit, files = found
        allowed = self.hub.token and self.headers.get("Authorization") == f"Bearer {self.hub.token}"
        if repository in self.hub.gated and not allowed:
            return self.answer(403 if self.headers.get("Authorization") else 401, b"", {
                "X-Error-Code": "GatedRepo", "X-Error-Message": f"Access to model {repository} is restricted."})
        if path not in files:
            return self.answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
        data, name = files[path], digest(path, files[path])
        if is_lfs(path):
            return self.answer(302, b"", {
                "Location": f"{self.hub.redirect or self.hub.url('cdn')}/{name}?signature=x", "X-Repo-Commit": commit,
                "X-Linked-Etag": f'"{name}"', "X-Linked-Size": str(len(data))})
        return self.send_file(data, name, {"X-Repo-Commit": commit})

    def send_file(self, data, name, headers=None):
        headers = {"ETag": f'"{name}"', "Accept-Ranges": "bytes"} | (headers or {})
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not asked or self.fault.ignores_range:
            return self.answer(200, data, headers)
        first = int(asked[1])
        if first >= len(data):
            return self.answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        return self.answer(206, data[first:], headers | {"Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"})

    def answer(self, status, body, headers):
        fault = self.fault
        if fault.corrupt:
            body = bytes([body[0] ^ 255]) + body[1:]
        body = body[:len(body) - fault.short] + b"x" * fault.extra
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers | fault.headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault.hold:
            self.wfile.write(body[:len(body) // 2])
            self.wfile.flush()
            self.hub.released.wait()
            body = body[len(body) // 2:]
        if 0 <= fault.cut < len(body):
            body = body[:fault.cut]
            self.close_connection = True
        self.wfile.write(body)


def main():
    hub = FakeHub(*sys.argv[1:])
    print(hub.url("hub"), hub.url("cdn"), sep="\n", flush=True)
    for line in sys.stdin:
        [(command, value)] = json.loads(line).items()
        answer = ["done"]
        if command == "set":
            vars(hub).update(value)
        elif command == "fail":
            hub.fail(**value)
        elif command == "values":
            found = [request[value[0]] for request in hub.requests if value[1] in request["path"]]
            answer = [len(found), *found]
        elif command == "release":
            hub.released.set()
        print(*answer, sep="\n", flush=True)


if __name__ == "__main__":
    main()
