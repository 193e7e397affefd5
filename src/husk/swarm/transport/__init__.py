"""Connections between hosts: calls over TLS (`wire`), and a socket that listens before what serves it is loaded
(`listener`).
"""
