"""The shapes of the API's documents, one module per resource: fields once, in the API's own names.

`UNSET` marks a field that is left out of the answer, where dockerd leaves it out too.
"""
