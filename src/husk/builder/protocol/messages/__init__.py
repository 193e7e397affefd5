"""Messages of BuildKit's protocol, as typed structs that `husk.rpc.protobuf` writes and reads.

A field is declared with its number: `name: Annotated[str, 3] = ""`. Numbers and types are the public protocol's; fields
that nobody here asks for are left out, and ignored when they come.
"""
