"""`scripts/check-imports-in-functions` names the imports inside functions that are no doors."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/check-imports-in-functions"

MODULE = """import os

def f():
    import a

class C:
    async def g(self):
        # A door: it is dear,
        # and few want it.
        import b

        def h():
            from c import d
"""


@pytest.fixture
def script() -> ModuleType:
    loader = SourceFileLoader("check_imports_in_functions", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_those_without_a_reason_are_named(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODULE)
    assert [line.partition(": ")[0] for line in script.complaints(tmp_path)] == ["m.py:4", "m.py:13"]


def test_too_many_are_told_though_each_has_its_reason(script: ModuleType, tmp_path: Path) -> None:
    door = "def f():\n    # A door: it is dear.\n    import a\n"
    (tmp_path / "m.py").write_text(door * 3)
    assert script.complaints(tmp_path, most=3) == []
    assert script.complaints(tmp_path, most=2) == ["3 imports inside functions: at most 2 are doors."]


def test_a_module_of_doors_has_one_reason(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "composition.py").write_text("def f():\n    import a\n")
    assert script.complaints(tmp_path) == []
