"""What a word is: the tokenizers that run natively, and how any Python function serves as one."""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np
import numpy.typing as npt

TOKENIZERS = ("whitespace", "words")

# Apostrophes, the underscore, and the two joiners that Persian and the scripts of India need inside words.
JOINERS = "'\u2019_\u200c\u200d"
_IS_WORD, _IS_JOINER, _SHIFT = 1, 2, 2  # as in native/tokens.h
# Beyond are only code points without letters: tags, variation selectors (marks), private use.
_LAST_LETTER, _SELECTORS = 0x3FFFF, range(0xE0100, 0xE01F0)


def words(text: str) -> list[str]:
    """The words of a text: runs of letters, digits and marks, also around an inner apostrophe; lower-cased.

    This is the definition of the tokenizer `words`; the native one equals it, save that a capital sigma becomes a
    final one only where it is the last character of the word.

    >>> words("Don't panic: GRÜSSE, l’été 42!")
    ["don't", 'panic', 'grüsse', 'l’été', '42']
    """
    return [match.group().lower() for match in _pattern().finditer(text)]


@functools.cache
def _pattern() -> re.Pattern[str]:
    codes = (*range(_LAST_LETTER + 1), *_SELECTORS)
    marks = re.escape("".join(chr(c) for c in codes if unicodedata.category(chr(c))[0] == "M"))
    letter = rf"(?:[^\W_]|[{marks}])"
    return re.compile(rf"{letter}+(?:[{JOINERS}]{letter}+)*")


@functools.cache
def word_classes() -> npt.NDArray[np.uint32]:
    """What the native tokenizer `words` knows of each code point: its lower case, and whether it belongs to a word."""
    classes = np.arange(0, 0x110000 << _SHIFT, 1 << _SHIFT, dtype=np.uint32)
    for code in (*range(_LAST_LETTER + 1), *_SELECTORS):
        character = chr(code)
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            classes[code] = ord(character.lower()[0]) << _SHIFT | _IS_WORD
    for character in JOINERS:
        classes[ord(character)] |= _IS_JOINER
    return classes


def native_classes(tokenizer: object) -> npt.NDArray[np.uint32] | None:
    """The table that tells the native code to find words; None: it splits at white space."""
    return word_classes() if tokenizer == "words" else None
