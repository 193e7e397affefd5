"""What builds images: Dockerfiles are read here, and become a graph of operations that a solver carries out.

`dockerfile` reads the language: text in, typed instructions out, no files and no network. Nothing in here knows HTTP,
gRPC or the kernel.
"""
