"""The service Content: the blobs that records of builds name, for whoever asks for logs or attachments of a build."""

from collections.abc import AsyncGenerator

from husk.builder.protocol.history import BuildHistory
from husk.builder.protocol.messages import content
from husk.builder.protocol.serve import Metadata, answer, tell
from husk.errors import InvalidParameter, NotFound
from husk.rpc.grpc.connection import Handler

_SERVICE = "/containerd.services.content.v1.Content"
# What one message carries.
_PIECE = 1 << 20


class HistoryContent:
    def __init__(self, history: BuildHistory) -> None:
        self._history = history

    @property
    def methods(self) -> dict[str, Handler]:
        return {
            f"{_SERVICE}/Info": answer(content.InfoRequest, self.info),
            f"{_SERVICE}/Read": tell(content.ReadContentRequest, self.read),
        }

    async def info(self, request: content.InfoRequest, metadata: Metadata) -> content.InfoResponse:
        return content.InfoResponse(content.Info(request.digest, len(await self._blob(request.digest))))

    async def read(
        self, request: content.ReadContentRequest, metadata: Metadata
    ) -> AsyncGenerator[content.ReadContentResponse, None]:
        data = await self._blob(request.digest)
        end = request.offset + request.size if request.size else len(data)
        if not 0 <= request.offset <= len(data) or not request.offset <= end <= len(data):
            raise InvalidParameter(f"{request.digest} has {len(data)} bytes, and not those that were asked for")
        for start in range(request.offset, end, _PIECE):
            yield content.ReadContentResponse(start, data[start : min(start + _PIECE, end)])

    async def _blob(self, digest: str) -> bytes:
        await self._history.load()
        data = await self._history.blob(digest)
        if data is None:
            raise NotFound(f"content {digest}: not found")
        return data
