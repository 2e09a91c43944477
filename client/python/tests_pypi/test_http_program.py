"""The program's options."""
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-m", "attendant_client.http"]


def run(*words):
    return subprocess.run([*PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60)


def test_help():
    told = run("--help")
    assert told.returncode == 0
    for word in ("--server", "--api-key-file", "--model NAME[=SERVED]", "/v1/embeddings", "/models/NAME", "x-request-timeout"):
        assert word in told.stdout


@pytest.mark.parametrize("words, message", [
    (["--port", "70000"], "argument --port: expected 0..65535; got '70000'"),
    (["--timeout", "0"], "argument --timeout: expected a number above 0; got '0'"),
    (["--max-texts", "1.5"], "argument --max-texts: expected an integer above 0; got '1.5'"),
    (["--model", "a/b"], "argument --model: expected NAME or NAME=SERVED, where NAME has no slash; got 'a/b'"),
    (["--model", "a=b", "--model", "a=c"], "--model: a is there twice"),
    (["--tls-cert", "file"], "--tls-cert and --tls-key go together"),
    (["--api-key-file", "/nowhere"], "No such file or directory: '/nowhere'"),
    (["--server-ca", "/nowhere"], "No such file or directory: '/nowhere'"),
    (["--server", ""], "address: expected host:port or unix:/path; got an empty text"),
    (["nothing"], "unrecognized arguments: nothing"),
])
def test_options_that_are_refused(words, message):
    told = run(*words)
    assert told.returncode == 2 and message in told.stderr


@pytest.mark.parametrize("text, message", [("", "expected at least one key; got none"), ("a\nb c\n", "line 2: expected one key of")])
def test_key_files_that_are_refused(tmp_path, text, message):
    (tmp_path / "keys").write_text(text)
    told = run("--api-key-file", tmp_path / "keys")
    assert told.returncode == 2 and message in told.stderr and "b c" not in told.stderr


def test_a_token_is_not_sent_where_others_can_see_it(tmp_path):
    (tmp_path / "token").write_text("a-long-token\n")
    told = run("--server-token-file", tmp_path / "token")
    assert told.returncode == 2 and "token: expected TLS or a Unix socket" in told.stderr
