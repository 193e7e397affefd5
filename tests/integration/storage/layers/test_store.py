"""Layers come in whole or not at all, and a crash leaves nothing that the next start keeps."""

import asyncio
import errno
import gzip
import hashlib
import os
import random
import signal
from pathlib import Path

import pytest
import uvloop
import zstandard
from msgspec import structs

from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault
from husk.storage.layers.chain import chain_id
from husk.storage.layers.store import KIND
from husk.storage.state.store import Change
from tests.support.layers import GZIP, Store, directory, make_tar, member
from tests.support.workers import workers_of

TAR = make_tar(directory("d"), member("d/file", b"content" * 1000), member("other", b"x"))
NOISE = random.Random(1).randbytes(3_000_000)
BIG = make_tar(member("noise", NOISE), member("after", b"x"))


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def workers() -> set[int]:
    return workers_of(os.getpid())


async def worker_besides(before: set[int]) -> int:
    """The one that has just got its work."""
    async with asyncio.timeout(10):
        while not (new := workers() - before):
            await asyncio.sleep(0.001)
    [pid] = new
    return pid


def compressions(tar: bytes) -> dict[str, bytes]:
    middle = len(tar) // 2
    zstd = zstandard.ZstdCompressor()
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"skip"
    return {
        "plain": tar,
        "gzip": gzip.compress(tar),
        "gzip in members": gzip.compress(tar[:middle]) + gzip.compress(tar[middle:]),
        "gzip with padding": gzip.compress(tar) + bytes(100),
        "zstd": zstd.compress(tar),
        "zstd in frames": zstd.compress(tar[:middle]) + skippable + zstd.compress(tar[middle:]),
        "zstd after a skippable frame": skippable + zstd.compress(tar),
    }


@pytest.mark.parametrize("form", compressions(b""))
@pytest.mark.parametrize("piece", [100, 1 << 20])
async def test_every_compression_gives_the_same_layer_and_keeps_its_own_blob(store: Store, form: str, piece: int):
    blob = compressions(TAR)[form]
    unpacked = await store.unpack(blob, sha256(blob), piece)
    layer = await store.layers.commit(unpacked, "")
    assert (layer.diff_id, layer.chain_id) == (sha256(TAR), sha256(TAR))
    assert (layer.blob, layer.blob_size, layer.size) == (sha256(blob), len(blob), 7001)
    assert layer.media_type == GZIP
    assert (store.layers.path(layer) / "d/file").read_bytes() == b"content" * 1000
    assert await store.blobs.read(layer.blob) == blob


async def test_an_archive_that_begins_like_another_format_is_still_a_tar(store: Store):
    tar = make_tar(member(b"\x1f\x8b\x08".decode("utf-8", "surrogateescape"), b"x"))
    # The pax header comes first for such a name; this one has it in the header itself.
    block = bytearray(make_tar(member("abc", b"x")))
    block[:3] = b"\x1f\x8b\x08"
    block[148:156] = b"%06o\0 " % (sum(block[:512]) - sum(block[148:156]) + 256)
    for archive in (tar, bytes(block)):
        assert (await store.unpack(archive)).size == 1


async def test_an_empty_archive_is_a_layer(store: Store):
    layer = await store.add(gzip.compress(make_tar()))
    assert layer.size == 0
    assert os.listdir(store.layers.path(layer)) == []


async def test_what_follows_the_end_of_the_archive_counts_for_the_digest(store: Store):
    tar = TAR + bytes(5_000_000)
    assert (await store.unpack(gzip.compress(tar))).diff_id == sha256(tar)


@pytest.mark.parametrize("damage", ["one byte", "truncated", "another layer", "rubbish", "nothing"])
@pytest.mark.parametrize("form", ["plain", "gzip", "zstd"])
async def test_data_that_does_not_have_its_digest_is_refused(store: Store, form: str, damage: str):
    blob = compressions(BIG)[form]
    middle = len(blob) // 2
    damaged = {
        "one byte": blob[:middle] + bytes([blob[middle] ^ 0x55]) + blob[middle + 1 :],
        "truncated": blob[:middle],
        "another layer": compressions(TAR)[form],
        "rubbish": NOISE,
        "nothing": b"",
    }[damage]
    with pytest.raises(InvalidParameter) as caught:
        await store.unpack(damaged, sha256(blob))
    assert caught.value.message == f"filesystem layer verification failed for digest {sha256(blob)}"
    await store.emptied()
    assert store.nothing_left()


@pytest.mark.parametrize("form", ["plain", "gzip", "zstd"])
async def test_truncated_data_without_a_digest_is_refused(store: Store, form: str):
    blob = compressions(BIG)[form]
    for cut in (len(blob) // 2, len(blob) // 3):
        with pytest.raises(InvalidParameter, match="unexpected EOF"):
            await store.unpack(blob[:cut])
    await store.emptied()
    assert store.nothing_left()


async def test_zstd_that_stops_between_two_entries_is_refused(store: Store):
    tar = make_tar(member("a", b"x" * 512))[:1024]
    compressor = zstandard.ZstdCompressor().compressobj()
    frame = compressor.compress(tar) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    with pytest.raises(InvalidParameter, match="unexpected EOF"):
        await store.unpack(frame)
    await store.unpack(frame + compressor.flush())  # the frame ends, and with it an archive without end blocks


@pytest.mark.parametrize("form", ["gzip", "zstd"])
async def test_damaged_data_with_its_right_digest_is_called_damaged(store: Store, form: str):
    blob = bytearray(compressions(BIG)[form])
    blob[-6] ^= 0x55
    with pytest.raises(InvalidParameter, match=r"damaged layer|unexpected EOF"):
        await store.unpack(bytes(blob), sha256(bytes(blob)))


async def test_rubbish_is_called_an_invalid_archive(store: Store):
    with pytest.raises(InvalidParameter, match="invalid tar header"):
        await store.unpack(NOISE)


async def test_a_digest_that_is_none_is_refused_before_anything_happens(store: Store):
    with pytest.raises(InvalidParameter, match="invalid digest"):
        await store.unpack(TAR, "sha256:../../x")
    assert store.nothing_left()


async def test_leaving_without_finish_leaves_nothing(store: Store):
    before = workers()
    with pytest.raises(RuntimeError, match="the download broke"):
        async with store.layers.ingest(None, GZIP) as ingest:
            await ingest.write(BIG[:1_000_000])
            raise RuntimeError("the download broke")
    await store.emptied()
    assert store.nothing_left()
    await gone(before)


async def test_a_cancelled_ingest_leaves_nothing(store: Store):
    before = workers()
    full = asyncio.Event()

    async def feed() -> None:
        async with store.layers.ingest(None, GZIP) as ingest:
            await ingest.write(BIG[:1000])
            full.set()
            while True:
                await ingest.write(b"")
                await asyncio.sleep(0)

    task = asyncio.get_running_loop().create_task(feed())
    await full.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.emptied()
    assert store.nothing_left()
    await gone(before)


async def test_writing_waits_for_a_worker_that_does_not_read(store: Store):
    before = workers()
    async with store.layers.ingest(None, GZIP) as ingest:
        pid = await worker_besides(before)
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                for _ in range(8):
                    await ingest.write(NOISE)
        os.kill(pid, signal.SIGCONT)


async def test_writing_to_a_worker_that_was_killed_fails_soon(store: Store):
    before = workers()
    with pytest.raises(SystemFault, match="worker"):
        async with store.layers.ingest(None, GZIP) as ingest:
            os.kill(await worker_besides(before), signal.SIGKILL)
            async with asyncio.timeout(10):
                while True:
                    await ingest.write(NOISE)
    await store.emptied()
    assert store.nothing_left()


async def test_writing_on_after_the_archive_proved_bad_tells_why(store: Store):
    with pytest.raises(InvalidParameter, match="outside"):
        async with store.layers.ingest(None, GZIP) as ingest:
            async with asyncio.timeout(10):
                await ingest.write(make_tar(member("../x", b"")))
                while True:
                    await ingest.write(NOISE)


def test_it_works_on_uvloop_as_well(tmp_path: Path):
    async def scenario() -> None:
        store = Store(tmp_path)
        await store.open()
        layer = await store.add(gzip.compress(BIG))
        assert (store.layers.path(layer) / "noise").read_bytes() == NOISE
        with pytest.raises(HuskError):
            await store.unpack(BIG[:1_000_000])
        await store.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


async def test_layers_stack_and_the_chain_is_given_topmost_first(store: Store):
    base = await store.add(TAR)
    other = make_tar(member("second", b"2"))
    top = await store.add(other, base.chain_id)
    assert top.chain_id == chain_id(base.chain_id, sha256(other))
    assert top.parent == base.chain_id
    paths = [str(store.layers.path(layer)) for layer in (top, base)]
    assert store.layers.lower([base.chain_id, top.chain_id]) == paths
    with pytest.raises(NotFound):
        store.layers.lower([base.chain_id, "sha256:" + "0" * 64])


async def test_committing_the_same_layer_again_returns_the_first(store: Store):
    first = await store.add(gzip.compress(TAR))
    second = await store.add(TAR)
    await store.emptied()
    assert second == first
    assert store.directories() == [first.directory]
    assert store.blobs.all() == {first.blob}


async def test_two_at_once_commit_one(store: Store):
    one, two = await asyncio.gather(store.unpack(TAR), store.unpack(TAR))
    first, second = await asyncio.gather(store.layers.commit(one, ""), store.layers.commit(two, ""))
    assert first == second
    await store.emptied()
    assert store.directories() == [first.directory]


async def test_a_commit_on_an_unknown_parent_is_refused(store: Store):
    unpacked = await store.unpack(TAR)
    with pytest.raises(NotFound, match="layer does not exist"):
        await store.layers.commit(unpacked, "sha256:" + "0" * 64)
    await store.layers.discard(unpacked)
    await store.layers.discard(unpacked)
    await store.emptied()
    assert store.nothing_left()


async def test_a_root_directory_that_no_entry_describes_is_as_the_parents(store: Store):
    base = await store.add(make_tar(directory("./", mode=0o711, uid=3)))
    silent = await store.add(make_tar(member("a", b"")), base.chain_id)
    telling = await store.add(make_tar(directory("./", mode=0o755)), base.chain_id)
    found = [store.layers.path(layer).stat() for layer in (silent, telling)]
    assert [(status.st_mode & 0o777, status.st_uid) for status in found] == [(0o711, 3), (0o755, 0)]


async def test_removing_a_layer_removes_record_directory_and_blob_and_may_be_repeated(store: Store):
    layer = await store.add(TAR)
    await store.layers.remove(layer.chain_id)
    await store.layers.remove(layer.chain_id)
    assert store.layers.get(layer.chain_id) is None
    assert not store.state.load(KIND)
    await store.emptied()
    assert store.nothing_left()


async def test_a_layer_that_is_needed_by_the_time_it_would_go_stays(store: Store):
    layer = await store.add(TAR)
    other = await store.unpack(make_tar(member("b", b"")))
    needed: set[str] = set()

    async def need() -> None:
        needed.add(layer.chain_id)  # the removal still waits for the commit

    _, removed, _ = await asyncio.gather(
        store.layers.commit(other, ""), store.layers.remove(layer.chain_id, needed.__contains__), need()
    )
    assert not removed
    assert store.layers.get(layer.chain_id) == layer
    assert store.blobs.has(layer.blob)


async def test_nobody_finds_a_layer_any_more_that_was_judged_to_go(store: Store, monkeypatch: pytest.MonkeyPatch):
    layer = await store.add(TAR)
    commit, found = store.state.commit, []

    async def slow(*changes: Change, lazy: bool = False) -> None:
        found.append(store.layers.get(layer.chain_id))
        await commit(*changes)

    monkeypatch.setattr(store.state, "commit", slow)
    assert await store.layers.remove(layer.chain_id)
    assert found == [None]


async def test_a_layer_whose_removal_cannot_be_written_stays(store: Store, monkeypatch: pytest.MonkeyPatch):
    layer = await store.add(TAR)

    async def full(*changes: Change, lazy: bool = False) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space left"):
        patched.setattr(store.state, "commit", full)
        await store.layers.remove(layer.chain_id)
    assert store.layers.get(layer.chain_id) == layer


async def test_a_blob_stays_while_another_layer_has_it(store: Store):
    one = await store.add(TAR)
    two = await store.add(TAR, one.chain_id)
    assert store.layers.blobs() == {one.blob}
    await store.layers.remove(two.chain_id)
    assert store.blobs.has(one.blob)
    await store.layers.remove(one.chain_id)
    assert not store.blobs.has(one.blob)


async def test_layers_are_there_after_a_restart(store: Store):
    layer = await store.add(TAR)
    await store.close()
    await store.open()
    synced = structs.replace(layer, synced=True)
    assert store.layers.get(layer.chain_id) == synced
    assert list(store.layers.all()) == [synced]
    assert (store.layers.path(layer) / "other").exists()


async def test_a_start_sweeps_what_a_killed_daemon_left(store: Store):
    kept = await store.add(TAR)
    await store.unpack(BIG)  # complete and never committed
    deep = store.root / "layers/trash/zz/a/b"
    deep.mkdir(parents=True)
    store.blobs.temporary().write_bytes(b"half")
    await store.close()
    await store.open()
    await store.emptied()
    assert store.directories() == [kept.directory]
    assert os.listdir(store.root / "layers/trash") == []
    assert os.listdir(store.root / "blobs/ingest") == []
    fresh = await store.add(make_tar())
    assert int(fresh.directory, 36) > int("zz", 36)


async def test_a_layer_removed_half_way_is_finished_at_the_next_start(store: Store):
    layer = await store.add(TAR)
    await store.state.commit(Change(KIND, layer.chain_id, None))
    await store.die()
    await store.open()
    await store.emptied()
    assert store.directories() == []
    assert await store.blobs.sweep(store.layers.blobs()) == [layer.blob]


async def gone(before: set[int]) -> None:
    """Wait until no process is left that was not there before."""
    async with asyncio.timeout(10):
        while workers() - before:
            await asyncio.sleep(0.01)


async def test_large_and_small_files_of_a_plain_archive_are_whole(store: Store):
    """Large ones are copied by the kernel, out of the blob and over several steps; small ones come out of buffers."""
    rng = random.Random(7)
    sizes = [0, 1, 511, 512, 131_071, 131_072, 131_073, 1_048_576, 9_000_001, 3, 20_000_000, 700_000]
    contents = {f"f{number}": rng.randbytes(size) for number, size in enumerate(sizes)}
    archive = make_tar(*(member(name, data) for name, data in contents.items()))
    unpacked = await store.unpack(archive, sha256(archive), piece=70_001)
    assert unpacked.diff_id == unpacked.blob == sha256(archive)
    tree = store.layers.path(await store.layers.commit(unpacked, ""))
    for name, data in contents.items():
        assert (tree / name).read_bytes() == data
