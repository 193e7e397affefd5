"""Meaning of a declared service: checks, defaults, changes, templates, and the containers of its tasks.

`validate` says what is wrong with a service, `defaults` what it did not say, `declared` what a new version changes;
`expand` fills Go's templates for a task, `containers` makes a container's configuration of a task.

`addresses` reads addresses as clients write them, and asks the host for its own; all else is pure.
"""
