"""Encrypted on both sides of the front, with a token for the server."""
import http.client
import json
import ssl

from http_front import run_front
from programs import run_server
from test_connection import TOKEN, certificates, token_file  # noqa: F401, fixtures
from text_models import write_text_model


def test_tls_and_a_token(programs, certificates, token_file, tmp_path):  # noqa: F811
    (tmp_path / "model").mkdir()
    write_text_model(tmp_path / "model", pooling="mean")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    server_side = ["--tls-cert", certificates / "server.crt", "--tls-key", certificates / "server.key"]
    with run_server(programs, {"m": tmp_path / "model"}, *server_side, "--token-file", token_file) as server:
        with run_front(server.address, *server_side, "--server-ca", certificates / "ca.crt",
                       "--server-token-file", tmp_path / "token") as front:
            context = ssl.create_default_context(cafile=certificates / "ca.crt")
            connection = http.client.HTTPSConnection("127.0.0.1", front.port, context=context, timeout=60)
            connection.request("POST", "/v1/embeddings", json.dumps({"input": "a cat"}))
            answer = connection.getresponse()
            assert answer.status == 200 and len(json.loads(answer.read())["data"][0]["embedding"]) == 24
            connection.close()
        with run_front(server.address, "--server-ca", certificates / "ca.crt") as front:
            refused = front.post("/v1/embeddings", {"input": "a cat"})
            assert refused.status == 502 and refused.json["error"]["message"].startswith("the server answered UNAUTHENTICATED")
