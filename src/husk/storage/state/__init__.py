"""Records of everything the engine knows, in one SQLite file.

- `store` reads and commits them; `schema` is their form, and brings older ones up to it
- `reserve` keeps room on the disk for removals and ends; `debts` keeps what found no room even so
"""
