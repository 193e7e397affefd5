"""`scripts/check-mirrored-tests` names modules with logic and without a test; the list of exceptions only shrinks."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/check-mirrored-tests"
LOGIC = "def f(x):\n" + "".join(f"    if x == {n}:\n        return {n}\n" for n in range(6))


@pytest.fixture
def script() -> ModuleType:
    loader = SourceFileLoader("check_mirrored_tests", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "src/husk/engine/clever.py": LOGIC,
        "src/husk/engine/plain.py": "X = 1\n",
        "src/husk/engine/__init__.py": LOGIC,
        "src/husk/network/driver.py": LOGIC,
        "tests/integration/network/test_driver.py": "",
        "tests/integration/engine/test_clever.py": "",
        "tests/unmirrored.toml": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_logic_without_a_mirror_is_named(script: ModuleType, tree: Path) -> None:
    assert script.complaints(tree) == ["engine/clever.py: no tests/unit/engine/test_clever.py"]


def test_an_exception_names_what_covers_it(script: ModuleType, tree: Path) -> None:
    (tree / "tests/unmirrored.toml").write_text('"engine/clever.py" = "integration/engine/test_clever.py"')
    assert script.complaints(tree) == []
    (tree / "tests/unmirrored.toml").write_text('"engine/clever.py" = "integration/engine/test_gone.py"')
    assert script.complaints(tree) == ["engine/clever.py: integration/engine/test_gone.py is not there"]


def test_an_exception_that_is_not_needed_any_more(script: ModuleType, tree: Path) -> None:
    (tree / "tests/unmirrored.toml").write_text('"engine/clever.py" = "integration/engine/test_clever.py"')
    (tree / "tests/unit/engine").mkdir(parents=True)
    (tree / "tests/unit/engine/test_clever.py").write_text("")
    assert script.complaints(tree) == ["engine/clever.py: needs no place in tests/unmirrored.toml any more"]
