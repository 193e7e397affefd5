"""Questions for names over TCP: a container has so many conversations at once, and none that says nothing for long."""

import asyncio
import socket
from pathlib import Path

from husk.kernel import namespaces
from husk.network import dns
from husk.network.acceptor import Quota
from husk.network.resolver import ADDRESS, Resolver
from tests.support.bridges import open_driver


async def call(sandbox: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    def connect() -> socket.socket:
        return socket.create_connection((ADDRESS, 53), 5)

    made = await asyncio.to_thread(namespaces.run_inside, Path(sandbox), connect)
    made.setblocking(False)
    return await asyncio.open_connection(sock=made)


def question() -> bytes:
    asked = bytes.fromhex("000701000001000000000000") + dns.encode_name("one") + b"\0\x01\0\x01"
    return len(asked).to_bytes(2) + asked


async def test_conversations_have_a_number_and_an_end(settings):
    driver = await open_driver(settings, None, [])
    lease = await driver.acquire()
    quota = Quota(each=4, in_all=100)
    resolver = Resolver(lambda query: dns.addresses(query, []), lambda: [], quota, "container", idle=1.0)
    await resolver.open(lease.sandbox_path)
    try:
        callers = [await call(lease.sandbox_path) for _ in range(3)]
        # The third is sent away, the others when they have said nothing for long.
        assert await asyncio.wait_for(callers[2][0].read(), 10) == b""
        reader, writer = callers[0]
        for _ in range(3):
            writer.write(question())
            assert int.from_bytes(await reader.readexactly(2)) == len(await reader.read(1000))
        for reader, writer in callers:
            assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()
        assert quota.take("container", 4), "what they had is given back"
    finally:
        resolver.close()
        await driver.close(remove=True)
