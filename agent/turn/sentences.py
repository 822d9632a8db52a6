"""A text as its sentences, in any script."""

import re

_CLOSING = "」』”’）】"
_END = re.compile(
    r"(?<=[.!?…][\"'”’»)\]])\s+|(?<=[.!?…؟۔।])\s+"
    rf"|(?<=[。！？।])(?![。！？{_CLOSING}])\s*|(?<=[。！？][{_CLOSING}])\s*"
    r"|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+"
)


def sentences(text: str) -> list[str]:
    """In order, without the space around them. A sentence ends at its mark and a space, or at a line's end:
    an abbreviation may end one too early, which shortens and never distorts."""
    return [part.strip() for part in _END.split(text) if part and part.strip()]
