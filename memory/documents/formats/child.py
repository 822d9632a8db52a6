"""The process that parses documents: ``python -m memory.documents.formats.child BYTES``.

It may hold `BYTES` of memory. On standard input it reads a line of JSON, ``[name, size]``, and the document;
on standard output it answers with a line for each chunk, ``[heading, text]``, and a last one: ``{"title":
…}``, or ``{"unreadable": reason}``.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from memory.documents import chunking
from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.formats.parse import parse


def main(memory: int) -> None:
    if os.name == "posix":
        import resource

        os.nice(10)  # everything else on this machine goes first
        with suppress(OSError, ValueError):  # macOS refuses, and so does a system whose own limit is lower
            resource.setrlimit(resource.RLIMIT_AS, (memory, resource.getrlimit(resource.RLIMIT_AS)[1]))
    given, told = sys.stdin.buffer, sys.stdout.buffer
    while line := given.readline():
        name, size = json.loads(line)
        told.writelines(list(_answers(name, given.read(size))))
        told.flush()


def _answers(name: str, data: bytes) -> Iterator[bytes]:
    try:
        parsed = parse(name, data)
        chunks = chunking.split_into_chunks(parsed.blocks)
        if not chunks:
            raise UnreadableDocument("it holds headings and no text")
    except UnreadableDocument as error:
        yield _line({"unreadable": str(error)})
    except MemoryError:
        raise
    except Exception as error:  # a parser may raise anything: other files must still be read
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        yield _line({"unreadable": f"it cannot be parsed ({reason})"})
    else:
        yield from (_line([chunk.heading, chunk.text]) for chunk in chunks)
        yield _line({"title": parsed.title})


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


if __name__ == "__main__":
    main(int(sys.argv[1]))
