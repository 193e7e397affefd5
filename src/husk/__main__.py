"""`python -m husk` is the `husk` command."""

from husk.cli import main

main()
