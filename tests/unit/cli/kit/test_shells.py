"""Completions of bash with our script, given the line as a terminal gives it."""

import subprocess

import pytest

from husk.cli.commands import husk
from husk.cli.kit.shells import script

# Stands for the command: the words that are asked for come back.
ANSWER = """husk() { :; }; env() { printf 'plain,mine/app:1\nplain,%s\n' "${1#COMP_WORDS=}"; }\n"""


@pytest.mark.parametrize(
    ("line", "breaks", "told"),
    [
        ("husk rmi mi", " :", ["mine/app:1", "husk rmi mi"]),
        ("husk rmi mine/app:", " :", ["1", "husk rmi mine/app:"]),
        ("husk rmi mine/app:", " ", ["mine/app:1", "husk rmi mine/app:"]),
        ("husk rmi ", " :", ["mine/app:1", "husk rmi ''"]),
    ],
)
def test_words_end_at_blanks_alone(line, breaks, told):
    text = f"{ANSWER}{script(husk, 'bash')}\nCOMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_WORDBREAKS='{breaks}'\n"
    text += '_husk_completion husk; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == told, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_others_have_clicks_own(shell):
    assert "_HUSK_COMPLETE" in script(husk, shell)
