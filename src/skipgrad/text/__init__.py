"""Reads sentences from files, tables and iterables, whatever their size, in chunks.

>>> from skipgrad.text import TextOptions, find_source
>>> [bytes(chunk.data).split() for chunk in find_source(["to be", "or not"]).chunks(TextOptions())]
[[b'to', b'be', b'or', b'not']]
"""

from skipgrad.text.chunks import Chunk
from skipgrad.text.options import TextOptions
from skipgrad.text.sources import Source, find_source

__all__ = ["Chunk", "Source", "TextOptions", "find_source"]
