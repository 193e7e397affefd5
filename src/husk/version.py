"""The version of Husk. It stands alone, so that every part can tell it without loading the package's public names."""

__version__ = "0.1.0"
