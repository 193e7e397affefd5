"""Every command on the pages of docs/howto, and of the README's tour, is true: each page is followed from its top to its end, on a host of its own."""

import os
import re
from pathlib import Path

import pytest

from tests.support.page_host import page_host
from tests.support.pages import blocks

ROOT = Path(__file__).parents[3]
INDEX = ROOT / "docs/howto/README.md"
PAGES = sorted(page for page in INDEX.parent.glob("*.md") if page != INDEX)
# The cookbook is one of programs: tests/integration/library/test_documentation.py runs it.
TYPED = [page for page in PAGES if page.name != "cookbook.md"]
# Pages that tell how to point docker at the daemon.
FROM_THE_BEGINNING = ("README.md", "first-steps.md")
# Blocks that no test follows, each with the reason that its page gives: they should stay few.
NOT_RUN = {
    "dashboard.md": ["it needs another machine"],
    "first-steps.md": ["it installs packages and a service on this machine"],
    "library.md": ["it fetches from the Python package index"],
    "troubleshooting.md": ["it wants the daemon stopped, which is systemd's here"],
    "volumes.md": ["it needs a server of NFS"],
}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers")
@pytest.mark.parametrize("page", [ROOT / "README.md", *TYPED], ids=lambda page: page.stem)
def test_every_command_of_the_page(page: Path) -> None:
    text = page.read_text()
    with page_host(text, pointed=page.name not in FROM_THE_BEGINNING) as host:
        for block in blocks(text):
            host.follow(block)


def test_what_is_not_run_is_known() -> None:
    found = {page.name: [block.text for block in blocks(page.read_text()) if block.kind == "unrun"] for page in PAGES}
    assert {name: reasons for name, reasons in found.items() if reasons} == NOT_RUN


def test_a_file_is_named_in_the_text_above_it() -> None:
    for page in PAGES:
        lines = page.read_text().splitlines()
        for block in blocks(page.read_text()):
            if block.kind == "file":
                assert f"`{block.name}`" in " ".join(lines[max(0, block.line - 5) : block.line - 1]), (page, block.name)


def test_the_index_has_every_page_and_links_lead_somewhere() -> None:
    assert set(re.findall(r"\]\(([a-z-]+\.md)\)", INDEX.read_text())) == {page.name for page in PAGES}
    for page in [INDEX, *PAGES]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_tour_of_five_commands_is_the_one_that_is_followed() -> None:
    """docs/swarm.md has it, too."""
    [tour] = [block for block in blocks((ROOT / "docs/swarm.md").read_text()) if block.commands][:1]
    followed = next(block for block in blocks((INDEX.parent / "swarm.md").read_text()) if block.commands)
    assert [command.text for command in tour.commands] == [command.text for command in followed.commands]
    assert len(tour.commands) == 5
