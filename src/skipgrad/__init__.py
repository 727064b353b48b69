"""Learns vectors and language models over very large vocabularies."""

__version__ = "0.1.0"
