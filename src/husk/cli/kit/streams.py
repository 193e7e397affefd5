"""Output of containers, passed on: as it is, or with `--json` a document for each line."""

from husk.cli.kit.writing import line

_DESCRIPTORS = {"stdout": 1, "stderr": 2}


def descriptor(stream: str) -> int:
    return _DESCRIPTORS[stream]


class StreamLines:
    """Pieces in, documents out: `{"Stream": "stdout", "Line": "hello"}`; `timed` lines begin with their time."""

    def __init__(self, timed: bool = False) -> None:
        self._timed = timed
        self._begun = {stream: b"" for stream in _DESCRIPTORS}

    def add(self, stream: str, data: bytes) -> None:
        *whole, self._begun[stream] = (self._begun[stream] + data).split(b"\n")
        for each in whole:
            self._tell(stream, each)

    def end(self) -> None:
        """Nothing more comes: lines without an end are lines, too."""
        for stream, rest in self._begun.items():
            if rest:
                self._tell(stream, rest)
            self._begun[stream] = b""

    def _tell(self, stream: str, data: bytes) -> None:
        text = data.decode(errors="replace").removesuffix("\r")
        if self._timed:
            time, _, text = text.partition(" ")
            line({"Stream": stream, "Time": time, "Line": text})
        else:
            line({"Stream": stream, "Line": text})
