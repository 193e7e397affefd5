"""BuildKit's protocol on the daemon's socket: what `docker buildx`, Compose and `buildctl` speak.

    messages    what is said, as typed structs; the numbers of fields are the public protocol's
    errors      errors of ours as clients of gRPC know them, with details
    control     the service Control: a build from its request to its end, workers, the cache, history
    gateway     the service LLBBridge: what a frontend that runs in the client asks for
    worker      what carries builds out, as clients are told of it
    serve       paths of calls → methods of services
    server      the ways in: connections of clients, and sessions that we call

It is a room of the builder and not of the API: of HTTP it needs the connection alone, which the API's route hands over.

Nothing of it is imported before the first build (`tests/unit/builder/protocol/test_imports.py`).
"""
