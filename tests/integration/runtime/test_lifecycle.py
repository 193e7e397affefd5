"""A container from create to delete, with each runtime."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from husk.errors import SystemFault
from husk.kernel import cgroups, process
from husk.runtime import complaints
from husk.runtime.seccomp import default_profile
from husk.runtime.seccomp.precompiled import STAND_IN, CompiledFilters
from husk.runtime.spec import capabilities
from husk.runtime.spec.document import Resources, Rlimit
from husk.runtime.spec.host_facts import clamp, read_host_facts
from tests.support.cgroup_place import locate
from tests.support.waiting import until

from .conftest import Box, Workshop


async def test_a_container_runs_and_leaves_its_status_and_log(workshop: Workshop) -> None:
    box = await workshop.make("sh", "-c", "echo out; echo err >&2; exit 3")
    assert process.start_time(box.created.pid) is not None
    assert box.monitor.exit_status(box.bundle) is None
    await box.start()
    assert await box.ended() == 3
    assert sorted(box.log().splitlines()) == [b"err", b"out"]
    await box.runtime.delete(box.bundle.container_id)
    assert workshop.runtime.known() == []
    assert locate(f"{workshop.cgroup}/1", "memory") is None


async def test_log_lines_carry_utc_times_with_nanoseconds(workshop: Workshop) -> None:
    box = await workshop.make("echo", "hi")
    await box.start()
    await box.ended()
    assert box.bundle.log_path
    stamp, stream, tag, text = box.bundle.log_path.read_text().split(" ")
    assert stamp.endswith("+00:00")
    assert len(stamp) == len("2024-01-01T00:00:00.123456789+00:00")
    assert (stream, tag, text) == ("stdout", "F", "hi\n")


async def test_a_created_container_waits_until_it_is_started(workshop: Workshop) -> None:
    box = await workshop.make("echo", "hi")
    assert workshop.runtime.known() == [box.bundle.container_id]
    assert box.log() == b""
    await box.runtime.delete(box.bundle.container_id, force=True)
    assert await box.ended() == 137


async def test_starting_twice_fails_with_the_runtimes_message(workshop: Workshop) -> None:
    box = await workshop.make("sleep", "100")
    await box.start()
    with pytest.raises(SystemFault, match="OCI runtime start failed"):
        await box.start()


@pytest.mark.parametrize(
    ("command", "message", "code"),
    [
        ("nosuch", 'exec: "nosuch": executable file not found in $PATH', 127),
        ("/no/such", 'exec: "/no/such": stat /no/such: no such file or directory', 127),
        ("/etc", 'exec: "/etc": permission denied', 126),
    ],
)
async def test_a_command_that_cannot_run_is_told_at_create(
    workshop: Workshop, command: str, message: str, code: int
) -> None:
    with pytest.raises(SystemFault) as failure:
        await workshop.make(command)
    assert message in failure.value.message
    assert complaints.exit_code(failure.value.message) == code
    assert workshop.runtime.known() == []


async def test_a_killed_container_has_the_status_of_the_signal(workshop: Workshop) -> None:
    box = await workshop.make("sleep", "100")
    await box.start()
    await box.runtime.kill(box.bundle.container_id, signal.SIGKILL)
    assert await box.ended() == 137


async def test_a_paused_container_stands_still(workshop: Workshop) -> None:
    """Its twin, which runs on, is the clock."""
    count = "while :; do echo x >> /tmp/$0; sleep 0.01; done"
    boxes = [await workshop.make("sh", "-c", count, name) for name in ("paused", "twin")]
    paused, twin = (workshop.rootfs / "tmp" / name for name in ("paused", "twin"))
    for box in boxes:
        await box.start()

    async def twin_goes_on() -> None:
        goal = twin.stat().st_size + 20
        await asyncio.to_thread(until, lambda: twin.stat().st_size >= goal, "the twin counts on")

    await asyncio.to_thread(until, lambda: paused.exists() and twin.exists(), "both count")
    await workshop.runtime.pause(boxes[0].bundle.container_id)
    await twin_goes_on()  # on cgroup v1 the freezer may take a moment
    before = paused.stat().st_size
    await twin_goes_on()
    assert paused.stat().st_size == before
    await workshop.runtime.resume(boxes[0].bundle.container_id)
    await asyncio.to_thread(until, lambda: paused.stat().st_size > before, "it counts on")
    for box, counter in zip(boxes, (paused, twin), strict=True):
        await workshop.runtime.delete(box.bundle.container_id, force=True)
        assert await box.ended() == 137
        counter.unlink()


async def test_the_same_bundle_can_run_again(workshop: Workshop) -> None:
    box = await workshop.make("sh", "-c", "exit 4")
    await box.start()
    assert await box.ended() == 4
    await box.runtime.delete(box.bundle.container_id)
    box.bundle.write_config(json.loads((box.bundle.directory / "config.json").read_bytes()))
    again = await workshop.create(box.bundle)
    assert again.monitor.exit_status(again.bundle) is None
    await again.start()
    assert await again.ended() == 4


async def test_running_out_of_memory_is_seen(workshop: Workshop) -> None:
    hog = "x=$(head -c 200000000 /dev/zero | tr '\\0' x)"
    box = await workshop.make("sh", "-c", hog, resources=Resources(memory=16 << 20, memory_swap=16 << 20))
    await box.start()
    assert await box.ended() == 137
    assert box.monitor.oom(box.bundle)
    assert cgroups.oom_killed(f"{workshop.cgroup}/1")
    assert "oom" not in os.listdir()


async def test_limits_are_in_the_cgroup(workshop: Workshop) -> None:
    limits = Resources(memory=64 << 20, pids_limit=17, cpu_shares=512)
    box = await workshop.make("sleep", "100", resources=limits)
    for controller, names, value in (
        ("memory", ("memory.limit_in_bytes", "memory.max"), str(64 << 20)),
        ("pids", ("pids.max",), "17"),
    ):
        group = locate(f"{workshop.cgroup}/1", controller)
        assert group is not None
        assert [file.read_text().strip() for name in names if (file := group / name).exists()] == [value]
    assert box.created.pid in cgroups.processes(f"{workshop.cgroup}/1")


async def test_what_the_host_does_not_allow_is_clamped_and_runs(workshop: Workshop) -> None:
    greedy = workshop.spec(
        "echo",
        "ran",
        rlimits=(Rlimit("RLIMIT_NOFILE", 2**20, 2**20),),
        oom_score_adj=-900,
        capabilities=(*capabilities.DEFAULT, "CAP_SYS_RESOURCE"),
    )
    spec, warnings = clamp(greedy, read_host_facts())
    assert len(warnings) in (0, 3)
    box = await workshop.create(workshop.bundle(spec))
    await box.start()
    assert await box.ended() == 0
    assert box.log() == b"ran\n"


async def test_children_that_outlive_the_first_process_end_with_the_container(workshop: Workshop) -> None:
    # No pid namespace: the kernel does not end them by itself.
    box = await workshop.make("sh", "-c", "sleep 1000 & exit 0", namespaces={"mount": "", "ipc": "", "uts": ""})
    first = process.pidfd_open(box.created.pid)
    await box.start()
    await process.wait_exit(first)
    os.close(first)
    await asyncio.to_thread(cgroups.kill_all, f"{workshop.cgroup}/1")
    assert await box.ended() == 0
    await box.runtime.delete(box.bundle.container_id, force=True)
    assert cgroups.processes(f"{workshop.cgroup}/1") == set()


async def test_a_cancelled_create_leaves_nothing_running(workshop: Workshop) -> None:
    bundle = workshop.bundle(workshop.spec("sleep", "100"))
    with workshop.sealed() as runtime, pytest.raises(SystemFault, match=r"did not finish within 0\.001 seconds"):
        await workshop.monitor.create(bundle, runtime, timeout=0.001)
    await workshop.runtime.delete(bundle.container_id, force=True)
    assert cgroups.processes(workshop.cgroup) == set()


async def test_nothing_is_made_after_a_cancelled_create(workshop: Workshop) -> None:
    """Cut off at another moment each time: what is removed then stays removed."""
    for moment in range(20):
        spec = workshop.spec("sleep", "100")
        bundle = workshop.bundle(spec)
        try:
            with workshop.sealed() as runtime:
                created = await workshop.monitor.create(bundle, runtime, timeout=0.001 * moment)
        except SystemFault:
            pass
        else:
            pidfd = process.pidfd_open(created.monitor_pid)
            workshop.boxes.append(Box(bundle, created, pidfd, workshop.runtime, workshop.monitor))
        await workshop.runtime.delete(bundle.container_id, force=True)
        cgroups.kill_all(spec.cgroup_path)
        cgroups.remove(spec.cgroup_path)
        await asyncio.sleep(0.02)
        assert not list(Path("/sys/fs/cgroup").glob("*" + spec.cgroup_path))


async def test_the_filter_holds_compiled_by_us_alone_and_beside_its_profile_and_by_the_runtime(
    workshop: Workshop,
) -> None:
    profile = default_profile.profile(capabilities.DEFAULT, os.uname().machine)
    assert profile is not None
    probe = "grep Seccomp: /proc/self/status; unshare -U true; chroot / true && echo chroot; (echo fork | cat)"
    plain = workshop.spec("sh", "-c", probe, seccomp=profile)
    compiled = replace(plain, annotations=await CompiledFilters().annotations(profile))
    assert compiled.annotations
    outputs = []
    taken = workshop.runtime.name == "crun"
    for number, spec in enumerate((plain, compiled, replace(compiled, seccomp=STAND_IN) if taken else compiled)):
        spec = replace(spec, cgroup_path=f"{workshop.cgroup}/s{number}")
        box = await workshop.create(workshop.bundle(spec))
        await box.start()
        await box.ended()
        outputs.append(sorted(box.log().splitlines()))
    assert outputs[0] == outputs[1] == outputs[2]
    assert b"Seccomp:\t2" in outputs[0]
    assert b"unshare: unshare(0x10000000): Operation not permitted" in outputs[0]
    assert {b"chroot", b"fork"} <= set(outputs[0])


async def test_a_runtime_that_does_not_take_the_compiled_filter_runs_nothing(workshop: Workshop) -> None:
    bundle = workshop.bundle(workshop.spec("echo", "free", seccomp=STAND_IN))
    with pytest.raises(SystemFault):
        box = await workshop.create(bundle)
        await box.start()


async def test_a_sealed_copy_of_the_runtime_does_the_same(workshop: Workshop) -> None:
    with workshop.sealed():
        assert await workshop.run("echo", "sealed") == (0, b"sealed\n")
        await workshop.clear()
        workshop.boxes.clear()
