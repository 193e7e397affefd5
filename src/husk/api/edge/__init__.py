"""The way of a request from a socket to its handler, and of what the handler raises to an answer."""
