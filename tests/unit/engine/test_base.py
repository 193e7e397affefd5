"""The base of all rooms: what may fail at a start."""

import asyncio

import pytest

from husk.engine.base import as_far_as_possible
from husk.errors import SystemFault


async def test_what_cannot_be_done_at_a_start_keeps_the_daemon_from_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(error: Exception) -> None:
        raise error

    await as_far_as_possible(fail(SystemFault("the disk is full")), "what is left of images")
    await as_far_as_possible(fail(OSError(28, "No space left")), "note of this boot")
    assert "what is left of images: the disk is full" in caplog.text and "note of this boot" in caplog.text
    with pytest.raises(asyncio.CancelledError):
        await as_far_as_possible(fail(asyncio.CancelledError()), "x")  # type: ignore[arg-type]
