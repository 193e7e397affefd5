"""`husk migrate`: images, volumes and networks of a dockerd or podman on this host come over, and containers as a
Compose file. Nothing is taken away there, and what came over once is not fetched again.

`images`, `volumes` and `networks` each bring one kind; `compose` is pure and makes the file; `report` shows how
far it is.
"""
