"""Certificates for servers that are measured with TLS."""
import pathlib
import subprocess


def _openssl(*arguments) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make(folder: pathlib.Path) -> None:
    """A certificate authority, ca.crt, and two certificates for localhost by it: 0.crt with 0.key, 1.crt with 1.key."""
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2, "-subj",
             "/CN=ca", "-keyout", folder / "ca.key", "-out", folder / "ca.crt")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n", encoding="utf-8")
    for name in "01":
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                 "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
        _openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
                 "-CAcreateserial", "-days", 2, "-extfile", folder / "names", "-out", folder / f"{name}.crt")
