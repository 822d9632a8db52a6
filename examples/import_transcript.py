"""Take over a conversation that was held elsewhere, and ask what was said in it.

    python examples/import_transcript.py [TRANSCRIPT.json] [QUESTION]

TRANSCRIPT.json is a list of {"author", "text", "sent_at"}, each perhaps with an "id": importing the same ids
again changes nothing. Without one, four lines that are written here are taken.
"""

import asyncio
import json
import sys
from pathlib import Path

from hachi import Companion

SAMPLE = [
    {
        "id": "1",
        "author": "Ana",
        "text": "The dentist moved me to Friday.",
        "sent_at": "2026-03-02T09:10:00Z",
    },
    {"id": "2", "author": "Ben", "text": "Which dentist do you see?", "sent_at": "2026-03-02T09:11:00Z"},
    {"id": "3", "author": "Ana", "text": "Doctor Levy, on Rose Street.", "sent_at": "2026-03-02T09:12:00Z"},
    {"id": "4", "author": "Ben", "text": "I row on Fridays, alas.", "sent_at": "2026-03-02T09:20:00Z"},
]


async def main(messages: list[dict[str, str]], question: str) -> None:
    async with Companion.open(periodic_jobs=False) as pet:
        count = await pet.conversations.import_messages(messages, user="ana", conversation="elsewhere")
        print(f"{count} messages taken over")
        for hit in await pet.search_memories(question, user="ana", limit=3):
            print(f"{hit.score:.2f} {hit.created_at:%Y-%m-%d} {hit.author}: {hit.content}")


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")) if len(sys.argv) > 1 else SAMPLE
    asyncio.run(main(given, sys.argv[2] if len(sys.argv) > 2 else "who is the dentist?"))
