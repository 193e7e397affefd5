"""Progress and output of a build, in messages of Control.Status. Pure."""

from collections.abc import Iterable, Iterator

from husk.builder.graph import ops
from husk.builder.graph.llb_write import lines, source_info
from husk.builder.jobs.status_log import LogTold, StatusTold, Told, VertexTold, WarningTold
from husk.builder.protocol.messages import control
from husk.builder.protocol.messages.common import timestamp

# What one message carries: things that were told, and bytes of logs.
_MOST_TOLD = 500
_MOST_BYTES = 1 << 20


def responses(told: Iterable[Told]) -> Iterator[control.StatusResponse]:
    """In the order it was told, in messages that are not too large."""
    answer = control.StatusResponse()
    count = bytes_told = 0
    for one in told:
        _add(answer, one)
        count += 1
        bytes_told += size(one)
        if count >= _MOST_TOLD or bytes_told >= _MOST_BYTES:
            yield answer
            answer, count, bytes_told = control.StatusResponse(), 0, 0
    if count:
        yield answer


def size(told: Told) -> int:
    """About as many bytes as it takes, where those can be many."""
    match told:
        case LogTold(data=data):
            return len(data)
        case WarningTold():
            return told.size
        case VertexTold(vertex=vertex):
            return len(vertex.name)
        case _:
            return 0


def _add(answer: control.StatusResponse, told: Told) -> None:
    match told:
        case VertexTold():
            answer.vertexes.append(_vertex(told))
        case StatusTold():
            answer.statuses.append(_status(told))
        case LogTold(vertex=vertex, stream=stream, data=data, timestamp=time):
            answer.logs.append(control.VertexLog(vertex, timestamp(time), stream, data))
        case WarningTold():
            answer.warnings.append(_warning(told))


def _vertex(told: VertexTold) -> control.Vertex:
    vertex = told.vertex
    return control.Vertex(
        digest=vertex.digest,
        inputs=[edge.digest for edge in vertex.operation.inputs],
        name=vertex.name,
        cached=told.cached,
        started=timestamp(told.started),
        completed=timestamp(told.completed),
        error=told.error,
        progress_group=ops.ProgressGroup(vertex.group, vertex.name) if vertex.group else None,
    )


def _status(told: StatusTold) -> control.VertexStatus:
    status = told.status
    return control.VertexStatus(
        id=status.id,
        vertex=told.vertex,
        name="",
        current=status.current,
        total=status.total,
        timestamp=timestamp(told.timestamp),
        started=timestamp(told.started),
        completed=timestamp(told.completed),
    )


def _warning(told: WarningTold) -> control.VertexWarning:
    source = told.source
    return control.VertexWarning(
        vertex=told.vertex,
        level=told.level,
        short=told.short,
        detail=told.detail,
        url=told.url,
        info=source_info(source) if source else None,
        ranges=[lines(one) for one in told.locations],
    )
