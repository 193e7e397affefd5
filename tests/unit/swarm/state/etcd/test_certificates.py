"""Certificates of etcd that can or cannot be used."""

import ssl
from pathlib import Path

import pytest

from husk.errors import InvalidParameter
from husk.swarm.state.etcd.certificates import CertificateFiles, tls_context
from tests.support.certificates import Authority


def test_certificates(tmp_path: Path):
    pair = Authority(tmp_path).issue("client")
    good = CertificateFiles(Path(pair.ca), Path(pair.cert), Path(pair.key))
    context = tls_context(good)
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
    other = Authority(tmp_path / "other").issue("client")
    for bad in (
        good._replace(ca=tmp_path / "nothing"),
        good._replace(ca=good.key),
        good._replace(cert=tmp_path / "nothing"),
        good._replace(key=Path(other.key)),
    ):
        with pytest.raises(InvalidParameter, match="cannot be used"):
            tls_context(bad)
