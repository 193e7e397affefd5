"""HTTP/1.1 as a server speaks it. Knows connections, requests and answers; knows nothing of Docker's API or the engine.

    bytes ──> parser (heads) ──> request ──> the handler that the server was given ──> response ──> bytes
              bodies (framing)   upload  (the body as it comes, or the socket handed to a worker)
                                 hijack, websocket, h2c (the connection leaves HTTP)

- `parser` and `bodies` are the core without I/O: bytes in, heads and pieces of bodies out, `BadRequest` for the rest.
- `server` has the protocol of one client, which feeds the core, calls the handler and writes answers in order; and all
  connections, the `limits` that keep a crowd of them in bounds, and the end of them.

A handler gets a `Request` and returns an `Answer`, at once or later: a coroutine ends with its client, a task goes on.
"""
