"""Faults in a client's request: a status and a reason; after a fault nothing on the connection can be trusted."""


class BadRequest(Exception):
    """Bytes that are no request, or one that could be read in two ways."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Http2Preface(BadRequest):
    """The client speaks HTTP/2 without having asked for it."""

    def __init__(self) -> None:
        super().__init__("HTTP Version Not Supported: HTTP/2 without an upgrade", 505)


class BodyTooLarge(Exception):
    """A document is larger than documents may be."""


class BodyCutOff(ConnectionError):
    """The client left, or ended its input, before the body was complete."""
