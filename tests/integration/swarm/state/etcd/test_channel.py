"""A client that cannot reach etcd is told why: nobody there, wrong certificates, no certificate at all."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from husk.errors import Forbidden, InvalidParameter, SystemFault
from husk.rpc.grpc import status
from husk.rpc.grpc.status import GrpcError
from husk.swarm.state.etcd import channel
from husk.swarm.state.etcd.certificates import CertificateFiles
from husk.swarm.state.etcd.channel import refusal
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.transactions import Put, StoreUnavailable
from tests.support.certificates import Authority, Pair
from tests.support.etcd import Etcd
from tests.support.store_contract import body
from tests.support.waiting import soon


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    with Etcd(tmp_path_factory.mktemp("etcd"), tls=True) as etcd:
        yield etcd


def files(pair: Pair) -> CertificateFiles:
    return CertificateFiles(Path(pair.ca), Path(pair.cert), Path(pair.key))


async def why(address: str, certificates: CertificateFiles | None = None) -> str:
    store = EtcdStore.open(address, certificates, patience=1)
    with pytest.raises(StoreUnavailable) as caught:
        await store.commit(Put("a", "b", body("1")))
    await store.close()
    return caught.value.message


async def test_nobody_is_there():
    told = await why("etcd://127.77.0.1:1,127.77.0.2:1")
    assert told.startswith("no member of the cluster store can be reached (127.77.0")
    assert "127.77.0.1:1: " in told and "127.77.0.2:1: " in told and "refused" in told.lower()
    assert "may have been" not in told


async def test_somebody_is_there_who_never_answers():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        told = await why(f"etcd://127.0.0.1:{silent.getsockname()[1]}")
    assert "no answer in time" in told


async def test_a_connection_that_is_made_while_the_store_is_closed_is_closed(monkeypatch: pytest.MonkeyPatch):
    asked, go_on, made = asyncio.Event(), asyncio.Event(), AsyncMock()

    async def slowly(*_: object) -> object:
        asked.set()
        await go_on.wait()
        return made

    monkeypatch.setattr(channel, "connect", slowly)
    store = EtcdStore.open("etcd://192.0.2.1")
    asking = soon(store.get("a", "b"))
    await asked.wait()
    await store.close()
    go_on.set()
    with pytest.raises(StoreUnavailable, match="is closed"):
        await asking
    made.close.assert_awaited_once()


async def test_an_authority_that_we_do_not_know(etcd: Etcd, tmp_path: Path):
    stranger = Authority(tmp_path).issue("stranger")
    assert "its certificate is not to be trusted" in await why(etcd.address, files(stranger))


async def test_a_certificate_that_etcd_does_not_take(etcd: Etcd, tmp_path: Path):
    good, stranger = files(etcd.client_certificate("known")), files(Authority(tmp_path).issue("stranger"))
    mixed = CertificateFiles(good.ca, stranger.cert, stranger.key)
    told = await why(etcd.address, mixed)
    assert "no member of the cluster store can be reached" in told and "TLS" in told


async def test_a_client_without_tls_is_not_answered(etcd: Etcd):
    assert "no member of the cluster store can be reached" in await why(etcd.address)


async def test_the_first_that_answers_is_used(etcd: Etcd):
    dead = "etcd://127.77.0.1:1," + etcd.address.removeprefix("etcd://")
    store = EtcdStore.open(dead, files(etcd.client_certificate("patient")))
    await store.commit(Put("a", "b", body("1")))
    await store.close()


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (status.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", SystemFault),
        (status.RESOURCE_EXHAUSTED, "etcdserver: too many requests", SystemFault),
        (status.PERMISSION_DENIED, "etcdserver: permission denied", Forbidden),
        (status.INVALID_ARGUMENT, "etcdserver: request is too large", InvalidParameter),
    ],
)
def test_what_etcd_says_in_our_words(code: int, said: str, kind: type[Exception]):
    told = refusal(GrpcError(code, said))
    assert isinstance(told, kind) and "etcdserver" not in str(told) and "etcd" in str(told)


async def test_only_who_writes_is_told_that_something_may_have_been_written(etcd: Etcd):
    store = EtcdStore.open(etcd.address, files(etcd.client_certificate("reader")), patience=1)
    [member] = etcd.members

    async def connected() -> None:
        """A busy machine may take more than the store's patience for a new connection."""
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(StoreUnavailable):
                    await store.listing("a")
                    return

    told = []
    for ask in (partial(store.listing, "a"), partial(store.commit, Put("a", "c", body("1")))):
        await connected()
        member.freeze()
        try:
            with pytest.raises(StoreUnavailable) as caught:
                await ask()
        finally:
            os.killpg(member.pid, signal.SIGCONT)
        told.append("may have been" in caught.value.message)
    assert told == [False, True]
    await store.close()
