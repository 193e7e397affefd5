"""The count of changes to records of containers: each puts another record in the place of the one before.

Whoever keeps something that was made of such records (an answer of the API) compares the count before it uses it
again. One count for all: who finds it changed looks at the records themselves. It is the process's own, as records are
handed from room to room and know no owner.
"""


class ChangeCounter:
    """The number of changes to something; it never goes back."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """To be called after the change: who looked between the two has to look again."""
        self.count += 1


changes = ChangeCounter()
