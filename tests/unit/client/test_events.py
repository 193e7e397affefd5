from datetime import UTC, datetime

from husk.api.http.response import Response

LINE = (
    b'{"Type":"container","Action":"die","Actor":{"ID":"c1","Attributes":{"name":"box","exitCode":"3"}},'
    b'"scope":"local","time":1767323045,"timeNano":1767323045500000000}\n'
)


async def test_what_happens(client, engine):
    engine.answers("GET", "/events", Response(200, LINE + b'{"Type":"image","Action":"pull","time":1}\n'))
    died, pulled = [event async for event in client.events(since=1, until=2, filters={"type": "container"})]
    assert (died.type, died.action, died.id, died.name) == ("container", "die", "c1", "box")
    assert died.attributes["exitCode"] == "3"
    assert died.time == datetime(2026, 1, 2, 3, 4, 5, 500000, tzinfo=UTC)
    assert (pulled.id, pulled.name, pulled.time_nano) == ("", "", 10**9)
    query = {"since": "1", "until": "2", "filters": '{"type":["container"]}'}
    assert engine.last("GET", "/events").query == query
