"""The name of something that nobody named: a mood and a person of our field."""

import os
from collections.abc import Container, Sequence

_MOODS = """
able amber brave brisk calm candid clever cosy crisp daring eager early fair fleet fond frank gentle glad golden happy
hardy honest humble jolly keen kind light lively lucid merry mild neat nimble noble open patient plain polite proud
quick quiet ready serene sharp silver sincere smart snug solid spry steady stout sunny sure swift tidy trim true upbeat
vivid warm wise witty zesty
"""
_PEOPLE = """
abel amdahl babbage backus bell boole borg cantor cerf codd cray curie darwin dijkstra easley engelbart erdos euclid
euler fermat feynman floyd gauss goldberg hamilton hamming hoare hopper iverson jacobi johnson kay keller kernighan
knuth lamport liskov lovelace mccarthy meitner minsky moore naur neumann newell noether nygaard perlis planck ritchie
sammet shannon stallman tarjan thompson torvalds turing wilkes wilson wirth yao zuse
"""


def random_name(taken: Container[str]) -> str:
    """A name that is not taken; with a number when luck runs out."""

    moods, people = _MOODS.split(), _PEOPLE.split()
    for attempt in range(100):
        name = f"{_any_of(moods)}_{_any_of(people)}" + (str(attempt) if attempt > 4 else "")
        if name not in taken:
            return name
    return os.urandom(8).hex()


def _any_of(words: Sequence[str]) -> str:
    return words[int.from_bytes(os.urandom(8)) % len(words)]
