"""Certificates of an authority that somebody made by hand."""

import ssl
from pathlib import Path

import pytest

from husk.trust import trusting
from tests.support.certificates import Authority


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(back, there, server_hostname="127.0.0.1"),
        server.wrap_bio(there, back, server_side=True),
    ]
    for side in [*sides, *sides]:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue


@pytest.mark.parametrize("complete", [True, False])
def test_an_authority_that_was_named_is_trusted_with_or_without_extensions(tmp_path: Path, complete: bool) -> None:
    pair = Authority(tmp_path, complete=complete).issue("server", addresses=["127.0.0.1"])
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair.cert, pair.key)
    shake_hands(server, trusting(pair.ca))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, trusting())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        trusting(str(tmp_path / "none.pem"))
