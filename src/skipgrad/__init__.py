"""Learns vectors and language models over very large vocabularies."""
