"""Take in what a chat program exported, every night: what is there already is left as it is,
and a model learns from the rest within a limit of calls.

    python examples/nightly_import.py conversations.json ana
"""

import sys
from pathlib import Path

from hachi import BadInput, parse_import, read_json
from hachi.sync import Companion

CALLS = 200
"""Model calls a night."""


def main(file: Path, user: str) -> None:
    parsed = parse_import(read_json(file.read_bytes()), user=user)
    with Companion.open(periodic_jobs=False) as pet:
        new = pet.conversations.import_(parsed, user=user)
        print(f"{new.messages} messages and {new.memories} facts are new")
        try:
            cost = pet.preview_learn(user=user)
            print(f"about {cost.calls} calls of {cost.model}")
            learned = pet.learn(user=user, calls=CALLS)
            rest = learned.remaining.messages
            print(f"{learned.facts} facts learned, {rest} messages are left for tomorrow")
        except BadInput as error:
            print(error)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
