"""Frontends: they make refs of a client's words.

`dockerfile_frontend` is the built-in one, with its `options`, contexts that are elsewhere (`remote_context`) and
Dockerfiles that a worker reads (`reading`). `gateway` runs frontends that are images.
"""
