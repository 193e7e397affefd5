"""The service LLBBridge: what a frontend asks for, here one that runs in the client, on the connection of its build.

Which build a call belongs to is in a header of it.
"""

import asyncio
import stat
from collections.abc import Sequence
from functools import cache

from husk.builder.graph import llb_read, llb_write, ops
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Edge, Source
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Question, Result
from husk.builder.jobs.status_log import WarningTold
from husk.builder.protocol import capabilities, policies, processes
from husk.builder.protocol.control import Control
from husk.builder.protocol.errors import failed_build, from_status
from husk.builder.protocol.messages import gateway
from husk.builder.protocol.messages.gateway import Stat
from husk.builder.protocol.messages.source_policy import Policy
from husk.builder.protocol.serve import Metadata, answer
from husk.builder.service import Builder, FoundFile
from husk.builder.solver.refs import Ref
from husk.builder.solver.source_policy import DescribedImage, SourceFacts, SourcePolicy
from husk.errors import HuskError, InvalidParameter, NotImplementedYet
from husk.registry.manifest import Platform
from husk.rpc.grpc.connection import Handler
from husk.rpc.grpc.stream import LARGEST_MESSAGE, ServerStream

_SERVICE = "/moby.buildkit.v1.frontend.LLBBridge"
BUILD_ID = "buildkit-controlapi-buildid"
# A message has to have room for more than the file.
_LARGEST_FILE = LARGEST_MESSAGE - (64 << 10)
_IMAGE = "docker-image://"
_LAYOUT = "oci-layout://"
_OF_LAYOUT = 1  # a type of resolver
_MOST_PLATFORMS = 100
# Larger graphs and directories are written in a thread.
_AT_ONCE = 200

# The kinds of files as Go has them, by what the kernel has for them.
_KINDS = {
    stat.S_IFREG: 0,
    stat.S_IFDIR: 1 << 31,
    stat.S_IFLNK: 1 << 27,
    stat.S_IFBLK: 1 << 26,
    stat.S_IFIFO: 1 << 25,
    stat.S_IFSOCK: 1 << 24,
    stat.S_IFCHR: 1 << 26 | 1 << 21,
}
_BITS = {stat.S_ISUID: 1 << 23, stat.S_ISGID: 1 << 22, stat.S_ISVTX: 1 << 20}


class Gateway:
    def __init__(self, builder: Builder, control: Control, own: Job | None = None) -> None:
        """`own` is the build of the only one who calls: a frontend that is an image."""
        self._builder = builder
        self._control = control
        self._own = own

    @property
    def methods(self) -> dict[str, Handler]:
        served = {
            "Ping": answer(gateway.Empty, self.ping),
            "Solve": answer(gateway.SolveRequest, self.solve),
            "Return": answer(gateway.ReturnRequest, self.return_),
            "Inputs": answer(gateway.Empty, self.inputs),
            "ResolveImageConfig": answer(gateway.ResolveImageConfigRequest, self.resolve_image_config),
            "ResolveSourceMeta": answer(gateway.ResolveSourceMetaRequest, self.resolve_source_meta),
            "ReadFile": answer(gateway.ReadFileRequest, self.read_file),
            "ReadDir": answer(gateway.ReadDirRequest, self.read_dir),
            "StatFile": answer(gateway.StatFileRequest, self.stat_file),
            "Evaluate": answer(gateway.EvaluateRequest, self.evaluate),
            "Warn": answer(gateway.WarnRequest, self.warn),
        }
        served |= dict.fromkeys(("NewContainer", "ReleaseContainer", "ExecProcess"), self._processes)
        return {f"{_SERVICE}/{name}": handler for name, handler in served.items()}

    async def _job(self, metadata: Metadata) -> Job:
        if self._own is not None:
            return self._own
        ids = metadata.get(BUILD_ID, [])
        if len(ids) != 1:
            raise InvalidParameter(f"a call of a frontend needs the header {BUILD_ID}")
        return await self._builder.jobs.get(ids[0])

    async def ping(self, request: gateway.Empty, metadata: Metadata) -> bytes:
        await self._job(metadata)
        workers = gateway.PongResponse(workers=[self._control.worker()])
        # Fields behind each other are one message.
        return _capabilities() + workers.encode()

    # --- solving -----------------------------------------------------------------------------------------------------

    async def solve(self, request: gateway.SolveRequest, metadata: Metadata) -> gateway.SolveResponse:
        job = await self._job(metadata)
        job.known.came(len(request.definition or b"") + sum(map(len, request.frontend_inputs.values())))
        question = Question(
            definition=await self._builder.definitions.read(request.definition) if request.definition else None,
            frontend=request.frontend,
            attributes=request.frontend_opt,
            inputs={name: await self._builder.definitions.read(one) for name, one in request.frontend_inputs.items()},
            evaluate=request.evaluate,
            source_policies=[policies.policy(one) for one in request.source_policies],
        )
        try:
            result = await job.solve(question)
        except HuskError as error:
            explained = job.explained(error)
            raise failed_build(explained, job.failed_step(explained)) from error
        if request.allow_result_return:
            return gateway.SolveResponse(result=await _result(job, result))
        return gateway.SolveResponse(ref=job.keep(result.ref) if result.ref else "")

    async def return_(self, request: gateway.ReturnRequest, metadata: Metadata) -> gateway.Empty:
        job = await self._job(metadata)
        if request.error is not None:
            job.fail(from_status(request.error))
        else:
            job.give(_given(job, request.result or gateway.Result()))
        return gateway.Empty()

    async def inputs(self, request: gateway.Empty, metadata: Metadata) -> gateway.InputsResponse:
        job = await self._job(metadata)
        if self._own is not None:
            inputs = {name: one for name, one in job.inputs.items() if one.edge}
            written = {name: await _written(one.graph, one.edge) for name, one in inputs.items()}
            return gateway.InputsResponse(written)
        return gateway.InputsResponse(self._control.inputs.get(job.id, {}))

    async def evaluate(self, request: gateway.EvaluateRequest, metadata: Metadata) -> gateway.Empty:
        job = await self._job(metadata)
        try:
            await job.ref(request.ref).stack()
        except HuskError as error:
            explained = job.explained(error)
            raise failed_build(explained, job.failed_step(explained)) from error
        return gateway.Empty()

    async def warn(self, request: gateway.WarnRequest, metadata: Metadata) -> gateway.Empty:
        job = await self._job(metadata)
        info = request.info
        job.warn(
            WarningTold(
                vertex=request.digest,
                level=request.level,
                short=request.short,
                detail=request.detail,
                url=request.url,
                source=llb_read.source_file(info) if info else None,
                locations=llb_read.locations(ops.Location(0, request.ranges)),
            )
        )
        return gateway.Empty()

    # --- processes ---------------------------------------------------------------------------------------------------

    async def _processes(self, stream: ServerStream) -> None:
        """Few builds have them: what knows them is loaded with the first call."""

        await processes.serve(stream, await self._job(stream.metadata))

    # --- sources -----------------------------------------------------------------------------------------------------

    async def resolve_image_config(
        self, request: gateway.ResolveImageConfigRequest, metadata: Metadata
    ) -> gateway.ResolveImageConfigResponse:
        job = await self._job(metadata)
        platform = llb_read.platform(request.platform)
        policy = _policy(job, request.source_policies)
        if request.resolver_type == _OF_LAYOUT:
            attributes = {"oci.store": request.store_id, "oci.session": request.session_id}
            layout = llb_read.source(ops.SourceOp(_LAYOUT + request.ref, attributes))
            source = await policy.admit(layout, platform)
            found = await self._builder.resolve_layout(job, source, platform, request.log_name)
        else:
            mode = request.resolve_mode or "default"
            name = llb_read.source(ops.SourceOp(request.ref)).identifier
            name = await policy.admit_image(name, platform, mode)
            found = await self._image(job, name, platform, mode, request.log_name)
        return gateway.ResolveImageConfigResponse(found.digest, found.config, found.reference)

    async def _image(self, job: Job, name: str, platform: Platform | None, mode: str, shown_as: str) -> DescribedImage:
        """Find the digest and the config of an image; `mode` is `default`, `pull` or `local`."""
        return await self._builder.resolve_image(job, name, platform, pull=mode == "pull", shown_as=shown_as)

    async def resolve_source_meta(
        self, request: gateway.ResolveSourceMetaRequest, metadata: Metadata
    ) -> gateway.ResolveSourceMetaResponse:
        source = request.source
        if source is None or "://" not in source.identifier:
            raise InvalidParameter("a source needs an identifier with a scheme")
        job = await self._job(metadata)
        platform = llb_read.platform(request.platform)
        ours = await _policy(job, request.source_policies).admit(llb_read.source(source), platform)
        scheme = ours.identifier.partition("://")[0]
        if scheme == "git":
            facts = SourceFacts(ours, git=await self._builder.resolve_git(job, ours, request.log_name))
        elif scheme in ("http", "https"):
            facts = SourceFacts(ours, file=await self._builder.resolve_file(job, ours, request.log_name))
        elif scheme == "local":
            facts = SourceFacts(ours)  # it is what it is when it is sent
        elif scheme == "oci-layout":
            found = await self._builder.resolve_layout(job, ours, platform, request.log_name)
            facts = SourceFacts(ours, DescribedImage(found.reference, found.digest, found.config))
        elif ours.identifier.startswith(_IMAGE):
            name = ours.identifier.removeprefix(_IMAGE)
            mode = ours.attributes.get("image.resolvemode") or request.resolve_mode or "default"
            found = await self._image(job, name, platform, mode, request.log_name)
            answered = Source(_IMAGE + found.reference, ours.attributes)
            facts = SourceFacts(answered, DescribedImage(found.reference, found.digest, found.config))
        else:
            raise NotImplementedYet(f"what {source.identifier} is cannot be asked for without building it yet")
        return policies.facts_message(facts, not (request.image and request.image.no_config))

    # --- files of refs -----------------------------------------------------------------------------------------------

    async def _ref(self, id: str, metadata: Metadata) -> Ref:
        return (await self._job(metadata)).ref(id)

    async def read_file(self, request: gateway.ReadFileRequest, metadata: Metadata) -> gateway.ReadFileResponse:
        ref = await self._ref(request.ref, metadata)
        wanted = request.range or gateway.FileRange()
        if wanted.offset < 0 or wanted.length < 0:
            raise InvalidParameter("a part of a file that cannot be")
        length = min(wanted.length or _LARGEST_FILE + 1, _LARGEST_FILE + 1)
        data = await self._builder.read_file(ref, request.file_path, wanted.offset, length)
        if len(data) > _LARGEST_FILE:
            raise InvalidParameter(f"{request.file_path} is too large to be read at once")
        return gateway.ReadFileResponse(data)

    async def read_dir(self, request: gateway.ReadDirRequest, metadata: Metadata) -> gateway.ReadDirResponse | bytes:
        ref = await self._ref(request.ref, metadata)
        entries = await self._builder.entries(ref, request.dir_path, request.include_pattern)
        if len(entries) < _AT_ONCE:
            return gateway.ReadDirResponse([stat_message(entry) for entry in entries])
        return await asyncio.to_thread(_encoded, entries)

    async def stat_file(self, request: gateway.StatFileRequest, metadata: Metadata) -> gateway.StatFileResponse:
        ref = await self._ref(request.ref, metadata)
        return gateway.StatFileResponse(stat_message(await self._builder.stat(ref, request.path)))


@cache
def _capabilities() -> bytes:
    """The part of an answer that is always the same, and most of its fields."""
    frontend, llb = capabilities.enabled(capabilities.GATEWAY), capabilities.enabled(capabilities.LLB)
    return gateway.PongResponse(frontend_caps=frontend, llb_caps=llb).encode()


def _policy(job: Job, more: Sequence[Policy]) -> SourcePolicy:
    """Join the client's policy for sources with those that a frontend adds when it asks."""
    return job.policy.with_policies([policies.policy(one) for one in more])


async def _result(job: Job, result: Result) -> gateway.Result:
    message = gateway.Result(metadata=dict(result.metadata))
    if result.refs:
        message.refs = gateway.RefMap({name: await _ref(job, ref) for name, ref in result.refs.items()})
    else:
        message.ref = await _ref(job, result.ref)
    return message


async def _ref(job: Job, ref: Ref | None) -> gateway.Ref:
    if ref is None or ref.edge is None:
        return gateway.Ref()
    return gateway.Ref(job.keep(ref), await _written(ref.graph, ref.edge))


async def _written(graph: Graph, edge: Edge | None) -> bytes:
    def write() -> bytes:
        return llb_write.definition(graph, edge).encode()

    return write() if len(graph) < _AT_ONCE else await asyncio.to_thread(write)


def _given(job: Job, message: gateway.Result) -> Result:
    """A result that a client made of refs it got from us."""
    ref = job.ref(message.ref.id) if message.ref is not None and message.ref.id else None
    refs = {name: job.ref(one.id) for name, one in (message.refs.refs if message.refs else {}).items() if one.id}
    if len(refs) > _MOST_PLATFORMS:
        raise InvalidParameter(f"a result is for {_MOST_PLATFORMS} platforms at most")
    return Result(ref=ref, refs=refs, metadata=message.metadata)


def _encoded(entries: Sequence[FoundFile]) -> bytes:
    return gateway.ReadDirResponse([stat_message(entry) for entry in entries]).encode()


def stat_message(file: FoundFile) -> Stat:
    mode = file.mode & 0o777 | _KINDS.get(stat.S_IFMT(file.mode), 0)
    for bit, meaning in _BITS.items():
        mode |= meaning if file.mode & bit else 0
    return Stat(
        path=_text(file.name),
        mode=mode,
        uid=file.uid,
        gid=file.gid,
        size=file.size,
        mod_time=file.mtime_ns,
        linkname=_text(file.link),
        devmajor=file.major,
        devminor=file.minor,
    )


def _text(name: str) -> str:
    """Write a name that need not be UTF-8 as messages have text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
