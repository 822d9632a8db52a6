"""The instructions as the stand-in reads them: who speaks, where and when, what is known and what is wished.

They are sections, each under a heading (``## …``). A quoted line (``> …``) is data: it is read where data is
looked for, and is never a heading nor a line of our own, whatever it says.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from agent.offline.due import now_in
from agent.offline.grammar import sentences
from agent.offline.languages import own_language
from agent.offline.words import Language


@dataclass(frozen=True, slots=True)
class OpenTask:
    id: str
    description: str


@dataclass(frozen=True, slots=True)
class Wishes:
    """How the person wants to be answered, as far as the stand-in can follow."""

    language: Language | None = None
    """None where none is wished, or one that it does not speak."""
    short: bool = False
    bullets: bool | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    speaker: str = ""
    private: bool = False
    now: datetime | None = None
    """In the person's time zone."""
    wishes: Wishes = Wishes()
    tasks: tuple[OpenTask, ...] = ()
    """Those that are not done."""
    more_tasks: bool = False
    """There are more than these; a tool tells them."""
    facts: tuple[str, ...] = ()
    """What the prompt tells already, so that no search brings it again."""
    profile: tuple[tuple[str, str], ...] = ()
    """Label and value."""
    digest: tuple[str, ...] = ()
    """Sentences of the summaries: of this conversation, then of what is known of the person."""

    @property
    def name(self) -> str:
        return dict(self.profile).get("name", "")


LABELS = ("name", "role", "lives in", "level", "native language", "time zone", "goals")

_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*$")
_QUOTE = re.compile(r"\s*>\s?")
_SPEAKING = re.compile(r"\W*speaking now[^\w\n]*:[ *`\"']*(.+?)[ *`\"'.]*$", re.I)
_WHERE = re.compile(r"\W*where[^\w\n]*:(.+)$", re.I)
_PRIVATE = re.compile(r"\b(?:private|direct|dm)\b(?!.*\bothers read)", re.I)
_TASK = re.compile(r"\W*\[task ([^\]]+)\]\s*(.+?)\s*(?:\((open|in_progress|done)\b[^()]*\))?\s*$")
_FACT = re.compile(r"\W*\[(?:FACT|PREFERENCE|INSIGHT)\]\s*(.+?)\s*(?:\(importance: [\d.]+\))?\s*$")
_LABEL = re.compile(rf"(?:^|; )({'|'.join(LABELS)}): ")


def prompt(instructions: str) -> Prompt:
    """What the instructions tell; whatever is missing stays empty."""
    sections = _sections(instructions)
    person = _section(sections, r".*\bperson speaking$")
    told = [line for line in map(_data, person) if line is not None]
    own = _section(sections, r"this conversation$") or [line for _, lines in sections for line in lines]
    setting = [line for line in own if not _QUOTE.match(line)]
    so_far = [_data(line) or "" for line in _section(sections, r"this conversation so far$")]
    tasks = [found for line in told if (found := _TASK.match(line))]
    facts = [found[1] for line in told if (found := _FACT.match(line))]
    summary = [line.removeprefix("summary: ") for line in told if line.startswith("summary: ")]
    return Prompt(
        speaker=_first(_SPEAKING, setting),
        private=bool(_PRIVATE.search(_first(_WHERE, setting))),
        now=now_in("\n".join(setting)),
        wishes=_wishes([line for line in person if not _QUOTE.match(line)]),
        tasks=tuple(OpenTask(found[1], found[2]) for found in tasks if found[3] != "done"),
        more_tasks="\nMore tasks are open" in instructions,
        facts=tuple(dict.fromkeys(facts)),
        profile=_profile(told),
        digest=tuple(part for text in (*so_far, *summary) for part in sentences(text)),
    )


def _sections(instructions: str) -> list[tuple[str, list[str]]]:
    """(heading, lines); what stands before the first heading has none."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in re.split(r"\r\n|\r|\n", instructions):
        if heading := _HEADING.match(line):
            sections.append((heading[1].casefold(), []))
        else:
            sections[-1][1].append(line)
    return sections


def _section(sections: list[tuple[str, list[str]]], title: str) -> list[str]:
    """The lines of the last such section: a persona, which comes first, may have headings of its own."""
    return next((lines for heading, lines in reversed(sections) if re.match(title, heading)), [])


def _data(line: str) -> str | None:
    """A quoted line without its mark; a task stands unquoted as well."""
    if mark := _QUOTE.match(line):
        return line[mark.end() :]
    return line if _TASK.match(line) else None


def _first(pattern: re.Pattern[str], lines: list[str]) -> str:
    return next((found[1] for line in lines if (found := pattern.match(line))), "")


def _profile(told: list[str]) -> tuple[tuple[str, str], ...]:
    """ "name: Mickael; lives in: Lyon" as pairs; only the first line may be the profile."""
    parts = _LABEL.split(told[0]) if told and _LABEL.match(told[0]) else [""]
    return tuple((label, value.strip()) for label, value in zip(parts[1::2], parts[2::2], strict=True))


def _wishes(lines: list[str]) -> Wishes:
    language = next((line.split(":", 1)[1] for line in lines if line.startswith("Answer them in:")), "")
    manner = next((line.split(":", 1)[1] for line in lines if line.startswith("Answers:")), "")
    items = [item.strip() for item in manner.casefold().split(";")]
    bullets = [not re.match(r"(?:no|not|without)\b", item) for item in items if "bullet" in item]
    return Wishes(own_language(language), "short" in items, bullets[0] if bullets else None)
