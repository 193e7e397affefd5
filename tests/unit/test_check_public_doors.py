"""`scripts/check-public-doors` counts where tests reach past public doors."""

import ast
import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/check-public-doors"


@pytest.fixture
def script() -> ModuleType:
    loader = SourceFileLoader("check_public_doors", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_private_names_of_others_are_counted(script: ModuleType) -> None:
    code = """
from husk.a import _inside, outside
from other import _theirs
class T:
    def f(self): return self._own
x._y
x.__class__
point._replace(a=1)
patch.setattr("husk.a._b", 1)
"""
    assert sorted(script.private(ast.parse(code))) == [2, 6, 9]


def test_replacements_and_names_that_are_handed_on_are_counted(script: ModuleType) -> None:
    assert list(script.replaced(ast.parse("monkeypatch.setattr(a, 'b', 1)\nsetattr(a, 'b', 1)"))) == [1]
    assert list(script.handed_on(ast.parse("from a import b as b, c as d\nimport e as e"))) == [1]


def test_the_tree_keeps_its_counts(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main() == 0
    assert "at most" in capsys.readouterr().out
