"""Build contexts that are no directory of the client's: a repository of git, or a file of the web.

A file is an archive, or else it is a Dockerfile. What a client got on its standard input is a file of the web, too: it
has an address that leads to the client's session.
"""

from typing import Protocol

from msgspec import Struct, structs

from husk.builder.dockerfile import git_refs
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import RemoteContext
from husk.builder.frontend.options import EPOCH, FrontendOptions
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Operation, Source
from husk.builder.graph.progress import Progress
from husk.builder.graph.schemes import redacted
from husk.builder.solver.refs import Ref
from husk.builder.solver.sessions import Session
from husk.builder.solver.solver import Solver
from husk.builder.solver.source_policy import FREE, SourcePolicy
from husk.compression import compression_of
from husk.errors import InvalidParameter
from husk.storage.tar.header import is_tar

KEEP_GIT_DIR = "BUILDKIT_CONTEXT_KEEP_GIT_DIR"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FILE = "context"
_HEAD = 1024
_SHOWN = "[internal] load remote build context"


class StackFiles(Protocol):
    """The files of stacks: `husk.builder.store`."""

    async def read(self, stack: str, path: str, most: int) -> bytes | None: ...


class Remote(Struct, frozen=True):
    """The source of a context elsewhere; `dockerfile` names its file, if the whole of it is a Dockerfile."""

    context: RemoteContext
    dockerfile: str = ""


async def find(
    wanted: FrontendOptions,
    solver: Solver,
    files: StackFiles,
    progress: Progress,
    session: Session | None,
    policy: SourcePolicy = FREE,
) -> Remote | None:
    """Find the context of a build in a repository or on the web; None for a directory of the client's."""
    if not wanted.context:
        return None
    args = wanted.options.build_args
    if source := git_context(wanted.context, keep=args.get(KEEP_GIT_DIR) in _TRUE, dated=bool(args.get(EPOCH))):
        shown = f"[internal] load git source {redacted(wanted.context)}"
        return Remote(RemoteContext(source, shown, directory=wanted.subdirectory))
    if not wanted.context.startswith(("http://", "https://")):
        raise InvalidParameter(f"unsupported build context: {wanted.context}")
    source = Source(wanted.context, {"http.filename": _FILE})
    graph = Graph()
    ref = Ref(solver, graph, graph.add(Operation(source), name=_SHOWN), progress, session, policy=policy)
    try:
        head = await files.read(await ref.stack(), _FILE, _HEAD) or b""
    finally:
        await ref.close()
    if is_archive(head):
        return Remote(RemoteContext(source, _SHOWN, archive=_FILE, directory=wanted.subdirectory))
    return Remote(RemoteContext(source, _SHOWN, directory=wanted.subdirectory), dockerfile=_FILE)


def named(text: str) -> Source | None:
    """Return the source of a named context: a repository, or a file of the web, which is not unpacked; else None."""
    if source := git_context(text):
        return source
    return Source(text, {"http.filename": _FILE}) if text.startswith(("http://", "https://")) else None


def git_context(text: str, *, keep: bool = False, dated: bool = False) -> Source | None:
    """The source of a repository, if a text names one. Files of one that is `dated` have the time of the commit."""
    try:
        repository = git_refs.parse(text)
    except DockerfileError as error:
        raise InvalidParameter(f"invalid git context {text}: {error.message}") from None
    if repository is None:
        return None
    mtime = repository.mtime or ("commit" if dated else "")
    kept = bool(keep or repository.keep_git_dir)
    return git_refs.source_of(structs.replace(repository, keep_git_dir=kept, mtime=mtime))


def is_archive(head: bytes) -> bool:
    """Return True if a file that begins so is an archive, plain or compressed; else it is taken for a Dockerfile."""

    return bool(compression_of(head)) or is_tar(head)
