"""Fuzzing: what comes from outside, changed at random, against all that reads it.

`test_parsers` gives bytes to one reader after the other (`targets`, `judge`), `test_live` feeds whole daemons through
their doors (`requests`, `wires`, `archives`, `lying` for a registry, `disk`) and has `watch` judge them.

make test                       a minute of the same inputs each time, so that a change alone decides what it says
make fuzz                       a minute of others
FUZZ_SECONDS=3600 make fuzz     an hour
HUSK_TEST_SEED=123 make fuzz    the inputs of a run that has printed this seed, in the same order
"""
