"""Things as HTML, for notebooks. All words are strangers': none of them is markup. Pure."""

from collections.abc import Iterable, Sequence

# As html.escape does it, which takes as long to load as a short command has.
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_PRE = "<pre style='margin:0;max-height:30em;overflow:auto;{}'>{}</pre>"
_RED = "color:#b00020"
# More of an output makes a notebook slow.
_MOST = 100_000


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with titles."""
    head = "".join(f"<th style='text-align:left'>{escape(each)}</th>" for each in titles)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def result(exit_code: int, ok: bool, stdout: bytes, stderr: bytes) -> str:
    """The end of a process, and its output."""
    head = f"<div style='{'' if ok else _RED}'>exit code {exit_code}</div>"
    return head + _shown(stdout, "") + _shown(stderr, _RED)


def _shown(output: bytes, style: str) -> str:
    text = output[:_MOST].decode(errors="replace")
    more = f"\n… {len(output) - _MOST} bytes more" if len(output) > _MOST else ""
    return _PRE.format(style, escape(text + more)) if output else ""


def escape(text: str) -> str:
    """The text with no character that HTML reads as markup."""
    return text.translate(_ESCAPED)
