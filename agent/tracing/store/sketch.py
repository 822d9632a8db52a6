"""A sketch of the text of a trace, at the end of its body: which three bytes it may hold beside each other.

A search for a text unpacks only the bodies whose sketches allow it: to unpack one takes some 0.2 ms. A body
is searched only for the secrets that its sketch allows. The sketch stands in the body, so it goes with it; a
body of before has none, and is always unpacked.
"""

from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_

BYTES = 1024
END = b"\x00sketch"
FACTORS = (0x9E37, 0x6255, 0x5851)
"""Odd, so that each of the three bytes changes the place."""
MOST = 8
"""Of a text that is looked for, so many places of the sketch are looked at."""


class Sketch:
    """The sketch of one text."""

    def __init__(self, text: str) -> None:
        import numpy as np

        self._found = np.bincount(_places(text), minlength=8 * BYTES) > 0

    def may_hold(self, part: str) -> bool:
        """Whether a part may stand in the text, in any letter case."""
        return bool(self._found[_places_of_part(part)].all())

    def packed(self) -> bytes:
        """Return what follows the body."""
        import numpy as np

        return bytes(np.packbits(self._found).tobytes() + END)


def may_hold(body: ColumnElement[bytes], text: str) -> ColumnElement[bool]:
    """True where a text may stand in this body, in any letter case."""
    size = func.length(body)
    here = (_is_set(body, size, int(place)) for place in dict.fromkeys(_places(text)[:MOST].tolist()))
    return or_(func.substr(body, size - len(END) + 1) != END, and_(True, *here))


def _is_set(body: ColumnElement[bytes], size: Any, place: int) -> ColumnElement[bool]:
    byte, mask = place >> 3, 0x80 >> (place & 7)
    at = size - len(END) - BYTES + byte + 1
    return func.substr(body, at, 1).in_([bytes([value]) for value in range(256) if value & mask])


@lru_cache(maxsize=256)
def _places_of_part(part: str) -> Any:
    return _places(part)


def _places(text: str) -> Any:
    """Return a place in the sketch for each three bytes of the text, in lower case."""
    import numpy as np

    letters = np.frombuffer(text.casefold().encode("utf-8", "surrogatepass"), np.uint8).astype(np.uint16)
    count = max(0, len(letters) - len(FACTORS) + 1)
    mixed = np.zeros(count, np.uint16)
    for at, factor in enumerate(FACTORS):
        mixed ^= letters[at : at + count] * np.uint16(factor)
    return (mixed >> 3).astype(np.int64)
