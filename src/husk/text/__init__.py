"""Texts that others wrote, read and checked. Pure: no module here does I/O or knows what its text is for."""
