"""The rules of the device: there while it is, and again when somebody has removed them. The kernel is a double."""

import pytest

from husk.network.wireguard import fence as module
from husk.network.wireguard.fence import Fence


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    done: list[str] = []

    class Double:
        def run(self, commands: str) -> str:
            done.append(commands)
            return ""

    monkeypatch.setattr(module, "Nftables", Double)
    monkeypatch.setattr("husk.network.integrity.look", lambda table, commands: {"ip6": commands})
    return done


def test_nothing_is_missing_where_nothing_is_needed(run: list[str]) -> None:
    fence = Fence("husk-wg")
    fence.apply()
    assert fence.intact() and run == [] and fence.table == "husk-wg"


@pytest.mark.parametrize("there", [True, False])
def test_what_somebody_removed_is_written_again(run: list[str], monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr("husk.network.integrity.same", lambda *_: there)
    fence = Fence("husk-wg")
    fence.put("wg-husk", "fe80::1", 4789)
    assert fence.intact() is there
    fence.apply()
    assert run[0] == run[1] and "wg-husk" in run[0]
    fence.remove()
    assert fence.intact() and run[2].endswith("delete table ip6 husk-wg\n")
    fence.apply()
    assert len(run) == 3


def test_what_cannot_be_looked_at_is_not_missing(run: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> bool:
        raise OSError(105, "No buffer space available")

    monkeypatch.setattr("husk.network.integrity.same", refused)
    fence = Fence("husk-wg")
    fence.put("wg-husk", "fe80::1", 4789)
    with pytest.raises(OSError, match="No buffer space"):
        fence.intact()
