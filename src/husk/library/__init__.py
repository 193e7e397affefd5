"""Husk as a library: `husk.Engine` is in `embedded`, `husk.run` in `blocking`; users import both from `husk`."""
