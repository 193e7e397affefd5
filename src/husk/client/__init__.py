"""The library's face: an engine's containers, images, networks, volumes and services as Python objects.

Everything here speaks the Engine API and nothing else, so the same classes work with an engine in this process
(`husk.Engine.open`), with a daemon behind a socket (`husk.connect`), and are all that the `husk` command uses.

    http, dial, calls               how an engine is reached and asked
    credentials                     who we are at registries
    output, tars, spec, stats …     pure: what travels, and how it is written
    thing                           what all things have in common
    context, builds                 what a build is told and sent
    containers, images, networks …  one module for each kind of thing: the collection, and the thing itself
    client                          all of them together

One more operation of the API gets its method in the module of its thing, a test beside that of the others, and its
line in `tests/unit/client/test_operations.py`, which knows of every operation how it is reached.
"""
