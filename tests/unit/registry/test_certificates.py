"""certs.d: a CA of one's own is trusted at its registry only, and client certificates are shown."""

import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from husk.errors import SystemFault
from husk.registry.certificates import context_for
from husk.registry.transport import Transport, Unreachable

HOST = "registry.localdomain"


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA with a certificate for the registry and one for a client."""
    top = tmp_path_factory.mktemp("pki")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", f"{top}/ca.key", "-out", f"{top}/ca.crt", "-subj", "/CN=test CA")
    for name in ("server", "client"):
        openssl("req", *key, "-keyout", f"{top}/{name}.key", "-out", f"{top}/{name}.csr", "-subj", f"/CN={name}")
        (top / "ext").write_text(f"subjectAltName=DNS:{HOST}\n")
        openssl(
            "x509", "-req", "-in", f"{top}/{name}.csr", "-CA", f"{top}/ca.crt", "-CAkey", f"{top}/ca.key",
            "-CAcreateserial", "-extfile", f"{top}/ext", "-out", f"{top}/{name}.pem",
        )  # fmt: skip
    return top


@pytest.fixture
async def server(pki: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A registry that wants to see a client certificate; its address."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # openssl's own commands make less than Python 3.13 wants to see
    context.load_cert_chain(pki / "server.pem", pki / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    app = web.Application()

    async def answer(request: web.Request) -> web.Response:
        return web.Response()

    app.router.add_get("/v2/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"{HOST}:{runner.addresses[0][1]}"
    await runner.cleanup()


def install(pki: Path, certs: Path, host: str, *names: str) -> None:
    directory = certs / host
    directory.mkdir(parents=True)
    places = {"ca": ("ca.crt", "ca.crt"), "cert": ("client.pem", "me.cert"), "key": ("client.key", "me.key")}
    for name in names:
        source, target = places[name]
        (directory / target).write_bytes((pki / source).read_bytes())


async def status_of(host: str, certs: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    import aiohttp.resolver

    async def resolve(self: object, name: str, port: int = 0, family: int = 2) -> list[dict[str, object]]:
        return [{"hostname": name, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

    monkeypatch.setattr(aiohttp.resolver.ThreadedResolver, "resolve", resolve)
    transport = Transport("test", certificates=[certs])
    try:
        async with transport.send("GET", f"https://{host}/v2/") as response:
            return response.status
    finally:
        await transport.close()


async def test_the_registrys_own_ca_and_our_certificate(
    pki: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(pki, tmp_path, server, "ca", "cert", "key")
    assert await status_of(server, tmp_path, monkeypatch) == 200


@pytest.mark.parametrize("names", [("ca",), ("cert", "key"), ()])
async def test_without_one_of_them_there_is_no_connection(
    pki: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    install(pki, tmp_path, server, *names)
    with pytest.raises(Unreachable):
        await status_of(server, tmp_path, monkeypatch)


async def test_another_registrys_ca_does_not_count(
    pki: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(pki, tmp_path, "other.localdomain", "ca", "cert", "key")
    with pytest.raises(Unreachable, match="certificate signed by unknown authority"):
        await status_of(server, tmp_path, monkeypatch)


def test_what_is_incomplete_is_told(pki: Path, tmp_path: Path) -> None:
    install(pki, tmp_path, "a", "ca", "cert")
    with pytest.raises(SystemFault, match=r"missing key me\.key for client certificate me\.cert"):
        context_for("a", [tmp_path])
    install(pki, tmp_path, "b", "key")
    with pytest.raises(SystemFault, match=r"missing client certificate me\.cert for key me\.key"):
        context_for("b", [tmp_path])
    (tmp_path / "c").mkdir()
    (tmp_path / "c/ca.crt").write_text("no certificate")
    with pytest.raises(SystemFault, match="cannot use the certificates in"):
        context_for("c", [tmp_path])
    assert context_for("d", [tmp_path]) is None
