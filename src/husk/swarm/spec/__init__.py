"""Meaning of a declared service: checks, defaults, changes, templates, and the containers of its tasks. Pure.

`validate` says what is wrong with a service, `defaults` what it did not say, `declared` what a new version changes;
`expand` fills Go's templates for a task, `containers` makes a container's configuration of a task.
"""
