"""Commands for images: one module for each, or for those that are alike. They ask the library (`husk.client`) and
nothing else of Husk; what commands have in common is in `cli/kit`."""
