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
    ("words", "others"),
    [
        (["--help"], CLICK),
        (["ps"], CLICK | CLIENT),
        (["images"], CLICK | CLIENT),
        (["inspect", "box"], CLICK | CLIENT),
        (["rm", "-f", "box"], CLICK | CLIENT),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_short_command_loads_little_of_others_and_nothing_of_the_engine(loaded, words, others):
    found = loaded(*words)
    assert [name for name in found if name.split(".")[0] in NEVER or name in NEVER] == []
    top = {name.split(".")[0] for name in found if "cython" not in name} - set(sys.stdlib_module_names) - {"husk"}
    assert top <= others
    own = {name.split(".")[1] for name in found if name.startswith("husk.")}
    assert own <= {"cli", "client", "config", "errors", "text", "version"}


def test_ps_loads_none_of_the_documents_that_it_does_not_show(loaded):
    unwanted = ("parts", "services", "service_spec", "builds", "context", "tars", "events", "spec", "execs", "progress")
    assert {f"husk.client.{name}" for name in unwanted}.isdisjoint(loaded("ps"))


def test_completions_of_names_load_as_little(loaded):
    found = loaded(_HUSK_COMPLETE="bash_complete", COMP_WORDS="husk rm x", COMP_CWORD="2")
    assert "husk.client.client" in found
    assert [name for name in found if name.split(".")[0] in ("asyncio", "ssl", "rich")] == []
