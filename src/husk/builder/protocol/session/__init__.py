"""A client's session: the client serves gRPC on a connection that it has opened, and a build calls it there.

- `client` is `husk.builder.solver.sessions.Session`, as calls of gRPC; `files`, `content` and `agent` are the parts
  of it that move bytes
- `attach` takes the connection of a session and lets builds know of it until it ends
"""
