"""The edge: Docker's Engine API over HTTP.

    http/       HTTP/1.1 as a server speaks it; it knows nothing of Docker or the engine
    server      takes each request from version and path to its handler, and errors to `{"message": ...}`
    router      the table of paths; `versioning` and `adapting` are what older clients see
    call        one request, in the words of handlers
    routes/     the operations, one module per resource: read the request, ask the engine, show what came
    types/      the shapes of the API's documents
    views/      the engine's things as the API shows them, pure
    framing, detach, feed, progress      what a stream looks like to a client
    listen, tls                          sockets to be reached at

Who may touch what: the edge asks `husk.engine` and nobody else. It knows no driver and no kernel; import contracts
hold that. Nothing below imports it.
"""
