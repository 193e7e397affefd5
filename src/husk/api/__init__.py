"""The edge: Docker's Engine API over HTTP.

    http/       HTTP/1.1 as a server speaks it; it knows nothing of Docker or the engine
    edge/       takes each request from its socket to its handler, and errors to `{"message": ...}`: `server`, with
                `listen` and `tls` for sockets, `counted` and `observed` for observers, `missing` for what is not built
    calls/      one request, in the words of handlers (`call`); `router` is the table of paths, `adapting` what older
                clients see, as `versioning` tells their version; `encoded` keeps answers
    routes/     the operations, one module per resource: read the request, ask the engine, show what came
    types/      the shapes of the API's documents
    views/      the engine's things as the API shows them, pure
    streams/    what a stream looks like to a client: `framing`, `detach`, `feed`, `closing`

Who may touch what: the edge asks `husk.engine` and nobody else. It knows no driver and no kernel; import contracts
hold that. Nothing below imports it.
"""
