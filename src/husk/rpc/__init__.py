"""Calls between programs: words of protocols that know nothing of what is said with them.

- `http2` one connection of HTTP/2, without I/O
- `grpc` calls on such a connection, for both sides
- `protobuf` messages, declared as structs
"""
