"""Regular expressions that are compiled when they are first used.

There are more than eighty of them, a start of the daemon uses a handful, and to compile them all was a tenth of it.
"""

import re
from typing import Any, AnyStr, cast


def pattern(text: AnyStr, flags: int | re.RegexFlag = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, but later. Call its methods; functions of `re` do not take it."""
    return cast("re.Pattern[AnyStr]", _Late(text, flags))


class _Late:
    """Stands for a pattern: whatever is asked of it is looked up in the compiled one, once."""

    def __init__(self, text: str | bytes, flags: int | re.RegexFlag) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found
