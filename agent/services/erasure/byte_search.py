"""Searches files for bytes, as a process of its own, which `search.py` starts.

A process that opens and closes a file of a SQLite database drops all locks that it holds on it. Another
process could then delete the write-ahead log of a database that is in use here.
"""

import json
import sys
from collections.abc import Sequence

CHUNK = 1 << 20
HOLE = bytes(CHUNK)
"""Edge's files are sparse: of hundreds of megabytes nearly all are zeros, which are read without a search."""


def holds(path: str, sought: Sequence[bytes]) -> bool:
    overlap = max(map(len, sought), default=1) - 1
    tail = b""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                data = tail + (chunk[:overlap] if HOLE.startswith(chunk) else chunk)
                if any(one in data for one in sought):
                    return True
                tail = data[len(data) - overlap :] if overlap else b""
    except OSError:  # gone meanwhile
        return False
    return False


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    texts, ids = ([bytes.fromhex(one) for one in asked[name]] for name in ("texts", "ids"))
    found = [path for path, indexed in asked["files"] if holds(path, [*texts, *(ids if indexed else ())])]
    json.dump(found, sys.stdout)
