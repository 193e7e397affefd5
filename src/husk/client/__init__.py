"""The library's face: an engine's containers, images, networks, volumes and services as Python objects.

Everything here speaks the Engine API and nothing else, so the same classes work with an engine in this process
(`husk.Engine.open`), with a daemon behind a socket (`husk.connect`), and are all that the `husk` command uses.

    http, dial, calls          how an engine is reached and asked
    output, tars, spec         pure: what travels, and how it is written
    containers, execs, …       one module for each kind of thing: the collection, and the thing itself
    client                     all of them together
"""
