"""A sketch of the text of a trace, at the end of its body: which three bytes it may hold beside each other.

A search for a text unpacks only the bodies whose sketches allow it. To unpack all of them takes some 0.2 ms
for each. It stands in the body, so it goes with it; a body of before has none, and is always unpacked.
"""

from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_

BYTES = 1024
END = b"\x00sketch"
FACTORS = (0x9E37, 0x6255, 0x5851)
"""Odd, so that each of the three bytes changes the place."""
MOST = 8
"""Of a text that is looked for, so many places of the sketch are looked at."""


def sketch(text: str) -> bytes:
    """Return what follows a body with this text."""
    import numpy as np

    found = np.bincount(_places(text), minlength=8 * BYTES) > 0
    return bytes(np.packbits(found).tobytes() + END)


def may_hold(body: ColumnElement[bytes], text: str) -> ColumnElement[bool]:
    """True where a text may stand in this body, in any letter case."""
    size = func.length(body)
    here = (_is_set(body, size, int(place)) for place in dict.fromkeys(_places(text)[:MOST].tolist()))
    return or_(func.substr(body, size - len(END) + 1) != END, and_(True, *here))


def _is_set(body: ColumnElement[bytes], size: Any, place: int) -> ColumnElement[bool]:
    byte, mask = place >> 3, 0x80 >> (place & 7)
    at = size - len(END) - BYTES + byte + 1
    return func.substr(body, at, 1).in_([bytes([value]) for value in range(256) if value & mask])


def _places(text: str) -> Any:
    """Return a place in the sketch for each three bytes of the text, in lower case."""
    import numpy as np

    letters = np.frombuffer(text.casefold().encode("utf-8", "surrogatepass"), np.uint8).astype(np.uint16)
    count = max(0, len(letters) - len(FACTORS) + 1)
    mixed = np.zeros(count, np.uint16)
    for at, factor in enumerate(FACTORS):
        mixed ^= letters[at : at + count] * np.uint16(factor)
    return (mixed >> 3).astype(np.int64)
