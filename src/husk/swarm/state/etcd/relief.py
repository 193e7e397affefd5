"""Room in an etcd that has taken all that it may and refuses every change: it forgets what was before, each member
makes its file as small as what is left, and then the alarm is ended.

Watches that were behind start over. Where what is there now is too much, etcd refuses again.
"""

import contextlib
import ssl
from collections.abc import Sequence

from husk.rpc.grpc.status import OUT_OF_RANGE, GrpcError
from husk.swarm.state.etcd.channel import CONNECT, EtcdChannel, refusal
from husk.swarm.state.etcd.messages import (
    ALARM,
    COMPACT,
    DEFRAGMENT,
    END,
    NO_SPACE,
    STATUS,
    AlarmRequest,
    AlarmResponse,
    CompactionRequest,
    StatusRequest,
    StatusResponse,
)
from husk.swarm.transport.wire import connect
from husk.text.endpoints import HostPort

# How long a member may take to write its file anew, in seconds.
WRITING = 120.0


async def relieve(endpoints: Sequence[HostPort], tls: ssl.SSLContext | None) -> bool:
    """Make room if there is an alarm; return True if there was. Members that are away are left for the next time."""
    channel = EtcdChannel(endpoints, tls)
    try:
        told = AlarmResponse.decode((await channel.unary(ALARM, AlarmRequest().encode()))[0])
        full = [alarm for alarm in told.alarms if alarm.alarm == NO_SPACE]
        if not full:
            return False
        await _compact(channel)
        for endpoint in endpoints:
            # Not all at once: none answers meanwhile.
            with contextlib.suppress(OSError, GrpcError):
                await _defragment(endpoint, tls)
        for alarm in full:
            request = AlarmRequest(action=END, member_id=alarm.member_id, alarm=NO_SPACE)
            await channel.unary(ALARM, request.encode())
        return True
    except GrpcError as error:
        raise refusal(error) from None
    finally:
        await channel.close()


async def _compact(channel: EtcdChannel) -> None:
    header = StatusResponse.decode((await channel.unary(STATUS, StatusRequest().encode()))[0]).header
    revision = header.revision if header is not None else 0
    try:
        await channel.unary(COMPACT, CompactionRequest(revision=revision, physical=True).encode())
    except GrpcError as error:
        # Somebody else has done it.
        if error.code != OUT_OF_RANGE:
            raise


async def _defragment(endpoint: HostPort, tls: ssl.SSLContext | None) -> None:
    connection = await connect(endpoint, tls, endpoint.host, CONNECT)
    try:
        await connection.unary(DEFRAGMENT, b"", timeout=WRITING)
    finally:
        await connection.close()
