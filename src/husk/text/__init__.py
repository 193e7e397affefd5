"""Texts that others wrote, read and checked. Pure: nothing here does I/O or knows what a text is for.

documents, gojson, json_faults        JSON: bounded and strict; as Go reads it; its mistakes in Go's words
globs, dockerignore                   patterns of paths, and files that are lists of them
re2, patterns                         regular expressions: Go's, which clients send; our own, compiled late
gotemplate, gofunctions               Go's template language
urls, endpoints, interface_names, subnets, digits   what is read of a single word
"""
