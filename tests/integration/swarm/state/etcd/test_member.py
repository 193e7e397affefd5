"""A member of etcd below a data root: started, kept running, handed from one daemon to the next, ended."""

import asyncio
import os
import random
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from husk.errors import SystemFault, Unavailable
from husk.kernel import process
from husk.swarm.ca.authority import issue_for_host, new_request, new_root, revocation_list
from husk.swarm.state.etcd import member as module
from husk.swarm.state.etcd.certificates import CertificateFiles, tls_context
from husk.swarm.state.etcd.member import Member, MemberSettings, command, find_program, plain
from husk.swarm.state.etcd.members import Members
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.member_files import install, replace
from husk.swarm.state.transactions import Put, StoreUnavailable
from husk.text.endpoints import HostPort
from tests.support.certificates import Authority
from tests.support.store_contract import body, text_of
from tests.support.waiting import until_async


@pytest.fixture
def settings(tmp_path: Path) -> MemberSettings:
    host = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.1"
    return MemberSettings("m1", tmp_path / "etcd", HostPort(host, 2379), HostPort(host, 2380))


@pytest.fixture
async def member(settings: MemberSettings) -> AsyncIterator[Member]:
    member = Member(settings)
    await member.start()
    await member.wait_ready()
    yield member
    await member.stop()
    assert process.given([f"--data-dir={settings.directory / 'data'}"]) == []


def address(settings: MemberSettings) -> str:
    return f"etcd://{settings.client}"


async def killed(member: Member) -> None:
    """Kill it, and wait for another process in its place."""
    before = member.pid
    os.kill(before, signal.SIGKILL)
    await until_async(lambda: member.pid not in (0, before), "another process")


async def joining(
    settings: MemberSettings, members: Members, ended: Callable[[], None] | None = None
) -> tuple[MemberSettings, Member]:
    """A second member, that has a vote."""
    host = settings.client.host.removesuffix(".1") + ".2"
    there = {settings.name: settings.peer}
    directory = settings.directory.with_name("second")
    second = MemberSettings("m2", directory, HostPort(host, 2379), HostPort(host, 2380), others=there)
    await members.add(second.peer, "http")
    joined = Member(second, ended=ended)
    await joined.start()
    await joined.wait_ready()
    await members.promote(second.peer)
    return second, joined


async def test_it_runs_until_it_is_stopped(member: Member, settings: MemberSettings):
    store = EtcdStore.open(address(settings), patience=60)
    await store.commit(Put("service", "a", body("1")))
    await store.close()
    assert settings.directory.stat().st_mode & 0o777 == 0o700
    await member.stop()
    assert member.pid == 0
    await member.stop()


async def test_it_is_started_again_when_it_is_killed_and_has_lost_nothing(member: Member, settings: MemberSettings):
    store = EtcdStore.open(address(settings), patience=60)
    for number in range(2):
        await store.commit(Put("service", "a", body(str(number))))
        await killed(member)
        await member.wait_ready()
        assert text_of(await store.get("service", "a")) == str(number)
    await store.close()


async def test_the_next_daemon_takes_it_over(member: Member, settings: MemberSettings):
    pid = member.pid
    await member.let_go()
    heir = Member(settings)
    await heir.start()
    assert heir.pid == pid
    await killed(heir)
    await heir.wait_ready()
    await heir.stop()


async def test_one_with_other_settings_is_replaced(member: Member, settings: MemberSettings):
    pid = member.pid
    await member.let_go()
    heir = Member(settings._replace(client=HostPort(settings.client.host, 2479)))
    await heir.start()
    await heir.wait_ready()
    assert heir.pid != pid and process.start_time(pid) is None
    await heir.stop()


async def test_certificates_are_asked_of_clients(settings: MemberSettings, tmp_path: Path):
    authority = Authority(tmp_path / "tls")
    own = authority.issue("server", [settings.client.host], both=True)
    client = authority.issue("manager")
    files = CertificateFiles(Path(own.ca), Path(own.cert), Path(own.key))
    member = Member(settings._replace(certificates=files))
    await member.start()
    await member.wait_ready()
    store = EtcdStore.open(
        address(settings), CertificateFiles(Path(client.ca), Path(client.cert), Path(client.key)), 60
    )
    await store.commit(Put("service", "a", body("1")))
    await store.close()
    await member.stop()


async def test_a_certificate_that_is_revoked_opens_nothing(settings: MemberSettings, tmp_path: Path):
    root = new_root(time.time())

    def given(name: str, serial: int) -> CertificateFiles:
        key, request = new_request()
        signed = issue_for_host(request, name, settings.client.host, root, 86400, time.time(), serial)
        files = CertificateFiles(*(tmp_path / f"{name}.{kind}" for kind in ("ca", "crt", "key")))
        install(dict(zip(files, (root.certificate, signed, key), strict=True)))
        return files

    own, copied = given("own", 7), given("copied", 8)
    revoked = tmp_path / "revoked.crl"

    def revoke(*serials: int) -> None:
        replace(revoked, revocation_list(serials, own.key.read_bytes(), time.time()))

    revoke()
    member = Member(settings._replace(certificates=own, revoked=revoked))
    await member.start()
    await member.wait_ready()
    held, pid = EtcdStore.open(address(settings), copied, 8), member.pid
    await held.commit(Put("service", "a", body("1")))
    revoke(8, 9)
    late, good = EtcdStore.open(address(settings), copied, 3), EtcdStore.open(address(settings), own, 60)
    with pytest.raises(StoreUnavailable):
        await late.commit(Put("service", "b", body("1")))
    await good.commit(Put("service", "b", body("1")))
    assert member.pid == pid
    await held.commit(Put("service", "a", body("2")))
    await member.restart()
    await member.wait_ready()
    with pytest.raises(StoreUnavailable):
        await held.commit(Put("service", "a", body("3")))
    await good.commit(Put("service", "b", body("2")))
    for store in (held, late, good):
        await store.close()
    await member.stop()


async def test_a_new_certificate_is_shown_without_a_restart(settings: MemberSettings, tmp_path: Path):
    authority = Authority(tmp_path / "tls")
    first = authority.issue("server", [settings.client.host], both=True)
    files = CertificateFiles(Path(first.ca), tmp_path / "member.crt", tmp_path / "member.key")
    replace(files.cert, Path(first.cert).read_bytes())
    replace(files.key, Path(first.key).read_bytes())
    member = Member(settings._replace(certificates=files))
    await member.start()
    await member.wait_ready()
    store = EtcdStore.open(address(settings), files, 60)
    await store.commit(Put("service", "a", body("1")))
    pid, shown = member.pid, await asyncio.to_thread(_shown, settings.client, files)
    second = authority.issue("server-again", [settings.client.host], both=True)
    replace(files.key, Path(second.key).read_bytes())
    replace(files.cert, Path(second.cert).read_bytes())
    assert await asyncio.to_thread(_shown, settings.client, files) != shown
    await store.renew(files)
    await store._channel.leave(store._channel._connection, "for a new connection")
    await store.commit(Put("service", "b", body("2")))
    assert member.pid == pid, "it was not restarted"
    await store.close()
    await member.stop()


def _shown(place: HostPort, files: CertificateFiles) -> bytes | None:
    """The certificate that a member shows to who connects."""
    with (
        socket.create_connection(place, 10) as below,
        tls_context(files).wrap_socket(below, server_hostname=place.host) as above,
    ):
        return above.getpeercert(binary_form=True)


async def test_one_that_ends_at_once_is_tried_again_and_the_reason_told(
    settings: MemberSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "SOON", 0.001)
    program = tmp_path / "broken"
    program.write_text(f"#!/bin/sh\necho start >>{tmp_path}/starts\necho the disk is upside down >&2\nexit 1\n")
    program.chmod(0o755)
    member = Member(settings, str(program))
    await member.start()
    starts = tmp_path / "starts"
    await until_async(lambda: starts.exists() and len(starts.read_text().split()) >= 4, "several tries")
    with pytest.raises(SystemFault, match="not ready"):
        await member.wait_ready(0.01)
    await until_async(lambda: "upside down" in member.trouble, "the reason")
    await member.stop()


async def test_one_that_the_others_removed_says_so_and_begins_anew(
    member: Member, settings: MemberSettings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "SOON", 0.1)
    members = Members.open([settings.client], None)
    ends = list[bool]()
    second, joined = await joining(settings, members, ended=lambda: ends.append(joined.removed))
    assert not joined.removed and not ends
    [own] = [known for known in await members.listing() if known.name == "m2"]
    await members.remove(own)
    await until_async(lambda: True in ends, "that it says so")
    await joined.clear()
    assert joined.pid == 0 and second.directory.exists() and not (second.directory / "data").exists()
    await members.add(second.peer, "http")
    anew = Member(second)
    await anew.start()
    await anew.wait_ready()
    await members.promote(second.peer)
    assert {known.name for known in await members.listing()} == {"m1", "m2"}
    await anew.stop()
    await members.close()


async def told_to_be_alone(settings: MemberSettings, directory: Path, first: str) -> Member:
    """One that runs, and whose etcd does this first when it is to make a new cluster."""
    program = directory / "etcd-with-a-fault"
    program.write_text(f'#!/bin/sh\ncase "$*" in *force-new*) {first};; esac\nexec {find_program()} "$@"\n')
    program.chmod(0o755)
    member = Member(settings, str(program))
    await member.start()
    await member.wait_ready()
    return member


async def test_one_that_is_slow_goes_on_alone(settings: MemberSettings, tmp_path: Path):
    """Nothing starts it as usual meanwhile, which would wait for the others."""
    member = await told_to_be_alone(settings, tmp_path, "sleep 2")
    members = Members.open([settings.client], None)
    _, second = await joining(settings, members)
    store = EtcdStore.open(address(settings), patience=60)
    await store.commit(Put("service", "a", body("1")))
    await second.clear()
    await member.start_alone()
    assert [known.name for known in await members.listing()] == ["m1"]
    assert text_of(await store.get("service", "a")) == "1"
    await killed(member)
    await member.wait_ready()
    await store.close()
    await members.close()
    await member.stop()
    assert process.given([f"--data-dir={settings.directory / 'data'}"]) == []


async def test_one_that_cannot_go_on_alone_goes_on_as_it_was(settings: MemberSettings, tmp_path: Path):
    member = await told_to_be_alone(settings, tmp_path, "exit 1")
    with pytest.raises(SystemFault, match="etcd is not ready after 1 seconds"):
        await member.start_alone(1)
    await member.wait_ready()
    await killed(member)
    await member.stop()


async def test_on_a_full_disk_that_is_the_reason_until_it_runs_again(
    settings: MemberSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It cannot say that itself: there is no room for its log either."""
    monkeypatch.setattr(module, "SOON", 0.001)
    monkeypatch.setattr(module, "STEADY", 0.05)
    monkeypatch.setattr(module, "_LEAST_ROOM", 1 << 62)
    room = tmp_path / "room"
    program = tmp_path / "broken"
    program.write_text(f"#!/bin/sh\n[ -e {room} ] || exit 1\nexec sleep 60\n")
    program.chmod(0o755)
    member = Member(settings, str(program))
    await member.start()
    await until_async(lambda: "no space left on device" in member.trouble, "the reason")
    room.touch()
    await until_async(lambda: not member.trouble, "that it runs")
    await member.stop()


def test_a_line_of_its_log_in_plain_words():
    told = '{"level":"fatal","msg":"failed to commit tx","error":"no space left on device","stacktrace":"a\\n\\tb"}'
    assert plain(told) == "failed to commit tx: no space left on device"
    assert plain('{"level":"fatal"}') == '{"level":"fatal"}' and plain("{broken") == "{broken"


def test_without_etcd_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(Unavailable, match="etcd-server"):
        find_program()


def test_who_joins_names_all_members(settings: MemberSettings):
    alone = command("etcd", settings)
    assert "--initial-cluster-state=new" in alone and not any("cert" in word for word in alone)
    joins = command("etcd", settings._replace(others={"m0": HostPort("10.0.0.1", 2380)}))
    assert f"--initial-cluster=m0=http://10.0.0.1:2380,m1=http://{settings.peer}" in joins
    assert "--initial-cluster-state=existing" in joins
