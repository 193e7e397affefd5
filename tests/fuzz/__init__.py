"""Fuzzing: what comes from outside, changed at random, against all that reads it.

make fuzz                       a minute, as in every run of the tests
FUZZ_SECONDS=3600 make fuzz     an hour
HUSK_TEST_SEED=123 make fuzz    the inputs of a run that has printed this seed, in the same order
"""
