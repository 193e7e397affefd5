"""A container's log outside of the engine: `files` that make it up, and the `transport` to receivers."""
