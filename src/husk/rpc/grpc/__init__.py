"""gRPC on one connection of HTTP/2, and both sides of it: clients of builds call us, and serve calls of ours.

    framing      messages in a stream's bytes, without I/O
    codes        how a call ends, as numbers
    status       how a call ends: codes, errors and their details
    stream       one call, as both sides see it
    connection   all calls of one connection

A connection lives as long as the bytes below it. Who calls uses `connection.call(path)`, or `unary(path, message)`: one
message there and one back. Who is called gives a handler, which gets each stream; what it raises is how the call ends.
Nothing that a peer sends can hold more memory than the limits say, and handlers are cancelled with their connection.
"""
