"""Scripts that shells read to complete our lines: click's own, and one for bash that knows of colons."""

from typing import ClassVar

import click
from click.shell_completion import BashComplete, ShellComplete, get_completion_class

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" response word head="" completion type value
    word="${line##*[[:space:]]}"
    # Bash takes words apart at colons and puts in what follows the last of them; names of images have colons.
    if [[ $COMP_WORDBREAKS == *:* && $word == *:* ]]; then
        head="${word%%"${word##*:}"}"
    fi
    [[ -n $word ]] || line+="''"

    response=$(env COMP_WORDS="$line" COMP_CWORD=-1 %(complete_var)s=bash_complete $1)

    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$head"}")
        fi
    done

    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    source_template: ClassVar[str] = _BASH


def script(command: click.Command, shell: str) -> str:
    """Return the script that `shell` has to read: bash, zsh or fish."""
    found: type[ShellComplete] | None = Bash if shell == "bash" else get_completion_class(shell)
    assert found is not None
    return found(command, {}, "husk", "_HUSK_COMPLETE").source()
