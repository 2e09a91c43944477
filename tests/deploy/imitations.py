"""The two services that a release uploads to, as far as gh and twine ask them, on ports of 127.0.0.1."""
import dataclasses
import email.parser
import email.policy
import http.server
import json
import pathlib
import threading
import urllib.parse

HOST = "github.localhost"  # which gh asks over HTTP, by the proxy of the environment


class Service:
    """An HTTP server for the time of the context; subclasses answer by `answer(method, path, query, headers, body)` with a
    status and a JSON value."""

    def __init__(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                url = urllib.parse.urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                query = dict(urllib.parse.parse_qsl(url.query))
                status, value = service.answer(self.command, url.path, query, self.headers, body)
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            do_HEAD = do_GET = do_POST = do_PATCH = handle_any

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@dataclasses.dataclass
class Released:
    tag: str = ""
    notes: str = ""
    draft: bool = True
    files: dict = dataclasses.field(default_factory=dict)


class ReleaseService(Service):
    """GitHub's releases of owner/attendant, which has one tag."""

    def __init__(self, tag: str):
        super().__init__()
        self._tag, self.released = tag, Released()

    def environment(self, work: pathlib.Path) -> dict:
        """gh's variables: no account of this machine, and every request to this port."""
        return {"GH_HOST": HOST, "GH_REPO": f"{HOST}/owner/attendant", "GH_TOKEN": "token", "GH_CONFIG_DIR": str(work / "gh"),
                "GH_ENTERPRISE_TOKEN": "token", "HTTP_PROXY": self.url, "http_proxy": self.url, "NO_PROXY": "", "no_proxy": ""}

    def answer(self, method: str, path: str, query: dict, headers, body: bytes) -> tuple:
        if headers.get("Authorization") != "token token":
            return 401, {"message": "Bad credentials"}
        releases = "/repos/owner/attendant/releases"
        if path.endswith("graphql"):  # --verify-tag
            found = json.loads(body)["variables"]["tagName"] == f"refs/tags/{self._tag}"
            return 200, {"data": {"repository": {"ref": {"id": "1"} if found else None}}}
        if (method, path) == ("POST", releases):
            asked = json.loads(body)
            self.released = Released(asked["tag_name"], asked["body"])
            return 201, self._release()
        if (method, path) == ("POST", "/upload"):
            self.released.files[query["name"]] = body
            return 201, {"name": query["name"]}
        if (method, path) == ("PATCH", f"{releases}/1"):
            self.released.draft = json.loads(body)["draft"]
            return 200, self._release()
        return 404, {"message": f"{method} {path}"}

    def _release(self) -> dict:
        api = f"http://api.{HOST}"
        return {"id": 1, "tag_name": self.released.tag, "draft": self.released.draft, "url": f"{api}/repos/owner/attendant/releases/1",
                "upload_url": f"{api}/upload{{?name,label}}", "html_url": f"http://{HOST}/owner/attendant/releases/1"}


class PackageIndex(Service):
    """PyPI's interface for uploads."""

    def __init__(self):
        super().__init__()
        self.uploaded = {}

    def answer(self, method: str, path: str, query: dict, headers, body: bytes) -> tuple:
        kind = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(kind + body)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
        if parts[":action"].get_content().strip() != "file_upload":
            return 400, {}
        self.uploaded[parts["content"].get_filename()] = parts["content"].get_payload(decode=True)
        return 200, {}
