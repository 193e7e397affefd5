"""Modules that a command does not need are not loaded: loading modules is nearly all of its time."""

import json
import os
import subprocess
import sys

import pytest

# A line as the console script reads it; then what was loaded for it, on stderr.
TYPED = """
import json, sys
before = set(sys.modules)
from husk.cli import main
sys.argv = ["husk", *sys.argv[1:]]
try:
    main()
finally:
    print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)
"""
# Of others: with the standard library, whose own way of loading changes from one Python to the next, less exactly.
CLICK = {"click"}
CLIENT = {"httptools"}
NEVER = ("asyncio", "ssl", "_ssl", "_hashlib", "logging", "subprocess", "tarfile", "rich", "importlib.metadata")


@pytest.fixture
def loaded(tmp_path):
    def typed(*words: str, **environment: str) -> list[str]:
        """Return the modules that a line loads; nobody answers it."""
        line = [sys.executable, "-c", TYPED, *words]
        said = {**os.environ, "HUSK_HOST": f"unix://{tmp_path}/none", "DOCKER_CONFIG": str(tmp_path), **environment}
        done = subprocess.run(line, capture_output=True, text=True, env=said)
        found: list[str] = json.loads(done.stderr.splitlines()[-1])
        return found

    return typed


@pytest.mark.parametrize(
    ("words", "others", "ours"),
    [
        (["--help"], CLICK, ()),
        (["run", "--help"], CLICK, ("husk.cli.containers.",)),
        (["ps"], CLICK | CLIENT, ("husk.cli.containers.ps", "husk.client.")),
        (["images"], CLICK | CLIENT, ("husk.cli.images.", "husk.client.")),
        (["inspect", "box"], CLICK | CLIENT, ("husk.cli.system.inspect", "husk.client.")),
        (["rm", "-f", "box"], CLICK | CLIENT, ("husk.cli.containers.verbs", "husk.client.")),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_command_loads_what_it_needs(loaded, words, others, ours):
    found = loaded(*words)
    assert [name for name in found if name.split(".")[0] in NEVER or name in NEVER] == []
    top = {name.split(".")[0] for name in found if "cython" not in name} - set(sys.stdlib_module_names) - {"husk"}
    assert top <= others
    everywhere = (
        "husk.cli",
        "husk.cli.commands",
        "husk.cli.kit",
        "husk.text",
        "husk.text.digits",
        "husk.errors",
        "husk.version",
        "husk.client",
    )
    packages = {name for each in ours for name in (each.rstrip(".").rpartition(".")[0], each.rstrip("."))}
    extra = [
        name
        for name in found
        if name.startswith("husk.")
        and name not in everywhere
        and name not in packages
        and not name.startswith(("husk.cli.kit.", *ours))
    ]
    assert extra == []


def test_ps_loads_only_what_containers_need_of_the_client(loaded):
    unwanted = ("swarm", "services", "service_files", "service_spec", "builds", "context", "tars", "events", "plugins")
    of_calls = ("spec", "execs", "stats", "credentials", "progress")
    assert {f"husk.client.{name}" for name in (*unwanted, *of_calls)}.isdisjoint(loaded("ps"))


def test_completions_of_names_load_as_little(loaded):
    found = loaded(_HUSK_COMPLETE="bash_complete", COMP_WORDS="husk rm x", COMP_CWORD="2")
    assert "husk.client.client" in found
    assert [name for name in found if name.split(".")[0] in ("asyncio", "ssl", "rich")] == []
