"""The operations, one module per resource; each module ends in its `ROUTES`.

A handler reads the request, asks the engine, shows what came. It builds no error response: it lets errors rise.
"""
