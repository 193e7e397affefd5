"""Numbers in text of strangers."""

import ast
from pathlib import Path

import pytest

import husk
from husk.text.digits import read_number

_SOURCE = Path(husk.__file__).parent
# Bytes and what we wrote know the ten digits alone; Go's `$1` takes the digits of every script.
_OTHERS = {
    "api/http/parser.py", "api/routes/__init__.py", "builder/dockerfile/words.py", "client/tars.py",
    "engine/containers/index.py", "kernel/brief_usage.py", "rpc/grpc/status.py", "runtime/host_files.py",
    "storage/tar/pax.py", "storage/tar/sparse.py",
}  # fmt: skip


@pytest.mark.parametrize("text", ["", "²", "٣", "-1", "+1", "1_0", " 1", "1 ", "0x1", "65536", "9" * 5000, "0" * 5000])
def test_what_is_no_number_below_the_limit_is_none(text: str) -> None:
    assert read_number(text, most=65535) is None


def test_a_number_may_begin_with_zeros_and_with_a_sign_where_it_may_be_negative() -> None:
    assert [read_number(text) for text in ("0", "080", "65535")] == [0, 80, 65535]
    assert [read_number(text, -9) for text in ("-9", "+7", "-10", "--5", "+-5", "-²", "-")] == [-9, 7, *[None] * 5]


def test_no_module_asks_for_digits_without_asking_for_ascii() -> None:
    asking = {}
    for path in _SOURCE.rglob("*.py"):
        text = path.read_text()
        if "isdigit" in text or "isdecimal" in text or "isnumeric" in text:
            asking[path.relative_to(_SOURCE).as_posix()] = [one for one in ast.walk(ast.parse(text)) if _lonely(one)]
    assert {name for name, found in asking.items() if found} <= _OTHERS


def _lonely(node: ast.AST) -> bool:
    """Tell if a statement asks more texts for digits than for ASCII."""
    if not isinstance(node, ast.stmt) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    asked = [each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    return sum(map(asked.count, ("isdigit", "isdecimal", "isnumeric"))) > asked.count("isascii")
