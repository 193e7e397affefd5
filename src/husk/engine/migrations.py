"""Migrations of records of earlier releases to what this one reads: one step per schema, each a pure function.

A step takes the kind and the body of a record of its schema and returns what the next schema wants. All of them run
when the store is opened, in one transaction; a record that a step stumbles over is put aside and told. Adding a field
with a default needs no step; whatever else changes the form of a stored type needs one here, one more in
`schema.SCHEMA`, and the records of the release before in `tests/releases`.

    1    the first release, 0.1.0
    2    0.2.0: the same; from then on each record carries its schema
"""

from collections.abc import Mapping

from husk.storage.state.schema import Step

STEPS: Mapping[int, Step] = {}
