"""Loops that go on for as long as their owner: `looking` looks when it is woken or its alarm is due, `persisting`
tries again until a manager answers.
"""
