"""What the tables of a language look like; `agent.offline.grammar` reads with them.

Kinds: `todo` and `done` (a task, in the group "rest"; `done?` only if such a task is open), `remember` (what
follows is a fact), `name` and `nickname`, `self` (in the first person), `other` (about somebody else),
`quote` (kept in its own words), `ask` (a question); anything else is the courtesy phrase of that name.
"""

import re
from dataclasses import dataclass

Table = tuple[tuple[str, re.Pattern[str]], ...]


@dataclass(frozen=True, slots=True)
class Tongue:
    lead: re.Pattern[str]
    """What is passed over before a sentence; the group "correction" is set where it corrects."""
    requests: Table
    """Courtesies and what the companion is told to do: tried first, question mark or not."""
    question: re.Pattern[str]
    statements: Table
    cut: re.Pattern[str]
    """What stands between two clauses that are facts of their own."""
    subordinate: re.Pattern[str]
    """Sentences that are never cut: "when I was five, I …"."""


def rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def table(*rows: tuple[str, str]) -> Table:
    return tuple((kind, rule(pattern)) for kind, pattern in rows)


NAME = r"(?P<rest>[^\W\d_][\w'.-]*(?: (?!and\b|by\b|et\b)[^\W\d_][\w'.-]*){0,2})(?:,? (?:by the way|btw))?$"
NEVER = rule(r"(?!)(?P<whom>)(?P<correction>)")
