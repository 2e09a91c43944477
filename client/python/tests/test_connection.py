"""TLS, tokens, Unix sockets, several servers, and the service config."""
import asyncio
import hashlib
import json
import socket
import subprocess

import pytest
from attendant_client import AsyncClient, Client, InvalidArgument, PermissionDenied, Tls, Unauthenticated, Unavailable
from attendant_client.channel import Connection, service_config
from programs import run_server

TOKEN, METRICS_TOKEN = "a-long-random-token", "another-token"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder with ca.crt, and server and client certificates that it has signed."""
    folder = tmp_path_factory.mktemp("tls")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl("req", "-x509", *new_key, "-keyout", folder / "ca.key", "-out", folder / "ca.crt", "-subj", "/CN=test ca",
            "-addext", "keyUsage=critical,keyCertSign")  # without which Python 3.13 refuses it
    for name in ("server", "client"):
        (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
        openssl("req", "-new", *new_key[:-2], "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", folder / "extensions", "-out", folder / f"{name}.crt")
    return folder


@pytest.fixture(scope="module")
def token_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    lines = [f"{scope} {hashlib.sha256(token.encode()).hexdigest()}" for scope, token in
             (("infer", TOKEN), ("metrics", METRICS_TOKEN))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_tls_with_certificates_of_both_sides_and_a_token(programs, certificates, token_file):
    read = {path.name: path.read_bytes() for path in certificates.iterdir()}
    mutual = Tls(ca=read["ca.crt"], certificate=read["client.crt"], key=read["client.key"])
    with run_server(programs, {"tiny": "synthetic:tiny"}, "--tls-cert", certificates / "server.crt", "--tls-key",
                    certificates / "server.key", "--tls-client-ca", certificates / "ca.crt", "--token-file", token_file) as server:
        with Client(server.address, tls=mutual, token=TOKEN) as client:
            assert client.models() == ["tiny"]
            assert client.encode(input_ids=[[1]]).hidden_states[0].shape == (1, 32)
        with Client(server.address, tls=mutual) as client, pytest.raises(Unauthenticated):
            client.models()
        with Client(server.address, tls=mutual, token=METRICS_TOKEN) as client, pytest.raises(PermissionDenied):
            client.models()
        with Client(server.address, tls=Tls(ca=read["ca.crt"]), token=TOKEN) as client, pytest.raises(Unauthenticated):
            client.models()
        with Client(server.address, tls=True, retry=False) as client, pytest.raises(Unavailable):
            client.models()


async def models_of(address, **options):
    async with AsyncClient(address, **options) as client:
        return await client.models()


def test_unix_socket_with_a_token(programs, token_file, tmp_path):
    address = f"unix:{tmp_path / 'socket'}"
    with run_server(programs, {"tiny": "synthetic:tiny"}, "--token-file", token_file, address=address):
        with Client(address, token=TOKEN) as client:
            assert client.encode(input_ids=[[1, 2]]).execution.tokens == 2
        assert asyncio.run(models_of(address, token=TOKEN)) == ["tiny"]
        with Client(address) as client, pytest.raises(Unauthenticated):
            client.models()


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_token_is_not_sent_where_others_can_see_it(client):
    with pytest.raises(InvalidArgument, match="token: expected TLS or a Unix socket.*; got host:8001 without tls") as refused:
        client("host:8001", token=TOKEN)
    assert refused.value.field == "token"


def test_a_text_that_is_no_token():
    with pytest.raises(InvalidArgument, match="token: expected printable characters") as refused:
        Client("unix:/socket", token="two words\n")
    assert "two words" not in str(refused.value)


def test_no_address():
    with pytest.raises(InvalidArgument, match="address: expected host:port"):
        Client("")


@pytest.mark.parametrize("scheme, end", [("http://", ""), ("HTTP://", "/"), ("grpc://", "")])
def test_a_url_is_the_server_that_it_names(server, scheme, end):
    address = scheme + server.address + end
    with Client(address) as client:
        assert "bert" in client.models()
    assert "bert" in asyncio.run(models_of(address))


def test_a_url_of_https_is_a_connection_over_tls(server):
    for scheme in ("https://", "grpcs://"):
        connection = Connection(scheme + "host:8001", token=TOKEN)  # which is only sent over TLS
        assert connection.target == "host:8001" and connection.credentials() is not None
    with Client("https://" + server.address, retry=False) as client, pytest.raises(Unavailable):
        client.models()


@pytest.mark.parametrize("address", ["http://localhost", "http://localhost:8002/v2", "http://", "https://:8001", "http://host:x",
                                     "http://host:0", "http://host:65536", "http://::1:8001", "http://user@host:8001"])
def test_a_url_that_names_no_server(address):
    expected = f"address: expected host:port, the server's gRPC port, without a path; got {address!r}"
    for client in (Client, AsyncClient):
        with pytest.raises(InvalidArgument) as refused:
            client(address)
        assert refused.value.message == expected and refused.value.field == "address"


@pytest.mark.parametrize("address", ["host:8001", "unix:/a/b", "unix:///a/b", "dns:///host:8001", "ipv4:10.0.0.1:1,10.0.0.2:2"])
def test_other_addresses_are_for_grpc_to_read(address):
    assert Connection(address).target == address and not Connection(address).encrypted


@pytest.mark.parametrize("variable", ["grpc_proxy", "https_proxy", "http_proxy"])
def test_a_proxy_of_the_environment_is_for_those_who_ask(server, monkeypatch, variable):
    with socket.socket() as unheard:  # it does not listen
        unheard.bind(("127.0.0.1", 0))
        monkeypatch.setenv(variable, f"http://127.0.0.1:{unheard.getsockname()[1]}")
        with Client(server.address) as client:
            assert "bert" in client.models()
        assert "bert" in asyncio.run(models_of(server.address))
        with Client(server.address, proxy=True, retry=False) as client, pytest.raises(Unavailable):
            client.models()
        with pytest.raises(Unavailable):
            asyncio.run(models_of(server.address, proxy=True, retry=False))


def test_calls_go_to_several_servers(programs):
    models = {"tiny": "synthetic:tiny"}
    with run_server(programs, models) as one, run_server(programs, models) as other:
        with Client(f"ipv4:{one.address},{other.address}") as client:
            for _ in range(10):
                client.models()
            one.process.terminate()
            for _ in range(20):
                assert client.encode(input_ids=[[1]]).execution.tokens == 1
            one.process.wait(60)
            assert client.models() == ["tiny"]


def test_service_config_is_that_of_the_program(programs):
    printed = json.loads(subprocess.check_output([str(programs / "attendant-client"), "service-config"], text=True))
    made = service_config()
    names = [config["methodConfig"][0].pop("name") for config in (made, printed)]
    assert made == printed
    # A newer program and an older one may know different methods.
    assert {"Attend", "Encode", "ListModels", "GetModel"} <= {name["method"] for name in names[0]} & {name["method"] for name in names[1]}


def test_trace_context_is_sent(server):
    with Client(server.address) as client:
        answer = client.encode("bert", input_ids=[[1]], request_id="test",
                               metadata=[("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")])
        assert answer.execution.tokens == 1
