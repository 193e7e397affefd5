"""Filters of system calls.

default_profile  what a container may do that asks for nothing else: a list that widens with its capabilities
custom_profile   a client's own profile, in Docker's form
precompiled      filters compiled once, as crun takes them
"""
