"""A clock that stands, and goes on as a test says."""

from husk.engine.model.clock import rfc3339
from husk.swarm.model.clocks import Clock


class FakeClock(Clock):
    """`wall` is the host's, which people may set; `at` goes on only."""

    def __init__(self, at: int = 0) -> None:
        self.at = self.wall = at

    def now(self) -> int:
        return self.at

    def awake(self) -> int:
        return self.at

    def seconds(self) -> float:
        return self.wall / 10**9

    def stamp(self) -> str:
        return rfc3339(self.wall)

    def pass_by(self, nanoseconds: int) -> None:
        self.at += nanoseconds
        self.wall += nanoseconds
