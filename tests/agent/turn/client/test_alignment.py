"""What a client sends, laid beside the stored messages."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest
from effort import steps_of
from hypothesis import given
from hypothesis import strategies as st

from agent.turn.client.alignment import Alignment, Key, align
from agent.turn.client.history import compared
from agent.types.client import ClientTurn, Said
from memory.records import Message

EVER = datetime(2026, 1, 1, tzinfo=UTC)


def words_of(text: str) -> tuple[str, str]:
    """`A1` is an answer, since it begins with a capital letter; `(q1)` is q1 in a template."""
    role = "assistant" if text[0].isupper() else "user"
    return role, f"Use this:\n{text[1:-1]}\nand that." if text[0] == "(" else text


def transcript(*told: str) -> list[Message]:
    """Messages: `x@` is hidden, `x<A1` follows A1, `x<` nothing."""
    found: list[Message] = []
    ids: dict[str, str] = {"": ""}
    for at, one in enumerate(told):
        name, *follows = one.rstrip("@").split("<")
        (role, text), before = words_of(name), ids[follows[0]] if follows else None
        gone = one.endswith("@")
        found.append(Message(str(at), "c", role, "ana", text, EVER, gone=gone, follows=before))  # type: ignore[arg-type]
        ids[name] = str(at)
    return found


def list_of(*told: str) -> list[Key]:
    return [words_of(text) for text in told]


def laid(stored: str, sent: str, after: str = "") -> Alignment:
    history = list_of(*sent.split())
    return align(transcript(*stored.split()), [*history, *list_of(*after.split())], len(history) - 1)


@pytest.mark.parametrize(
    ("stored", "sent", "pairs", "hidden"),
    [
        ("q1 A1 q2 A2", "q1 A1 q2 A2 q3", "0 1 2 3 -", ""),
        ("q1 A1 q2 A2", "q1 A1 x", "0 1 -", "2 3"),
        ("q1 A1 q2 A2", "q1 A1 q2", "0 1 2", "3"),  # answered anew
        # not sent is not deleted: trimmed at the beginning …
        ("q1 A1 ok Sure q2 A2 ok Great", "ok Great q3", "6 7 -", ""),
        ("ok Sure q1 A1", "q1 A1 ok", "2 3 -", ""),  # and the question was said before
        ("ok Sure q1 A1 ok Sure", "ok Sure q2", "4 5 -", ""),
        ("ok Sure q1 A1 ok Sure q2 A2", "ok Sure x", "4 5 -", "6 7"),  # nothing else tells where
        # … in the middle …
        ("q1 A1 q2 A2 q3 A3", "q1 A1 q3 A3 q4", "0 1 4 5 -", ""),
        ("q1 A1 q2 A2 q3 A3 q4 A4", "q1 A1 summary q4 A4 q5", "0 1 - 6 7 -", ""),
        ("q1 A1 q2 A2 q3 A3", "q1 A1 q3", "0 1 -", "2 3 4 5"),  # an edit, whatever was asked later
        # … or all of it
        ("q1 A1 q2 A2", "q3", "-", ""),
        ("q1 A1 q2 A2", "A1 q2", "1 2", "3"),  # the newest answer is what a compaction keeps
        ("q1 A1 q2 A2", "summary Yes q3", "- - -", ""),
        ("q1 A1 ok A2", "ok", "-", ""),
        ("ok A1 ok A2", "ok", "-", ""),
        ("ok A1 ok", "ok", "2", ""),  # without an answer
        ("q1 A1", "q1", "0", "1"),
        ("q1 A1", "summary Yes q1", "- - 0", "1"),
        ("q1 A1@ A2<q1", "q1", "0", "2"),
        ("q1@ A1@ x< X", "q1", "-", ""),
        ("q1 A1", "x X y", "- - -", ""),
        # a template
        ("(q1) A1 q2 A2", "q1 A1 q2 A2 q3", "0 1 2 3 -", ""),
        ("q1 A1 (q2) A2", "q1 A1 q2 A2 q3", "0 1 2 3 -", ""),
        ("q1 A1 q2 A2", "q1 A1 (q2) A2 q3", "0 1 2 3 -", ""),
        ("q1 A1 (q2) A2", "q2 A2 q3", "2 3 -", ""),
        ("q1 A1 (q2)@ A2@ x<A1 X", "q1 A1 q2 A2 q3", "0 1 2 3 -", "4 5"),
        # an edit that was saved
        ("q1 A1 q2 A2", "x A1 q2 A2 q3", "e0 1 2 3 -", ""),
        ("q1 A1 q2 A2 q3 A3", "q1 A1 x A2 q3 A3 q4", "0 1 e2 3 4 5 -", ""),
        ("q1 A1 q2 A2", "summary A2 q3", "- 3 -", ""),  # which is none
        # answers that were shown otherwise
        ("q1 A1 q2 A2", "q1 Edited q2 A2 q3", "0 1 2 3 -", ""),
        ("q1 A1 q2 A2", "q1 A1 q2 Stopped q3", "0 1 2 a2 -", "3"),
        ("q1 A1 q2", "q1 A1 q2 Stopped q3", "0 1 2 a2 -", ""),
        ("q1 A1 More<q1", "q1 A1More q2", "0 a0 -", "1 2"),
        ("q1 A1", "q1 Text A1 q2", "0 - 1 -", ""),  # beside a call of a tool
        # what only the client has
        ("q1 A1 q2 A2", "x X q1 A1 q2 A2 q3", "- - 0 1 2 3 -", ""),  # an example
        ("q1 A1 q2 A2", "q1 A1 forgotten Gone q2 A2 q3", "0 1 - - 2 3 -", ""),
        # branches
        ("q1 A1 q2@ A2@ x<A1 X", "q1 A1 q2 A2 q3", "0 1 2 3 -", "4 5"),
        ("q1 A1 q2@ A2@ x<A1@ X@ y<A1 Y", "q1 A1 x X q3", "0 1 4 5 -", "6 7"),
        ("q1 A1 q2 A2 x<A1@ X@ q3<A2 A3", "q1 A1 x X q4", "0 1 4 5 -", "2 3 6 7"),  # left twice
        ("q1@ A1@ x< X", "q1 A1 q2", "0 1 -", "2 3"),
        ("q1 A1 q2 A2 x<A1@ X@ ok@ Sure@", "q1 A1 q2 A2 ok", "0 1 2 3 -", ""),  # the `ok` to X
        ("q1 A1 q2 A2 x<A1@ X@ ok@ Sure@", "q1 A1 q2 A2 ok Sure q3", "0 1 2 3 - - -", ""),
        ("q1 A1 ok Sure x<A1@ X@ ok@ Sure@", "q1 A1 x X ok Sure q2", "0 1 4 5 6 7 -", "2 3"),
        ("q1 A1@ A2<q1", "q1 A1 q2", "0 1 -", "2"),
        ("q1 A1@ q2@ A3@ A2<q1", "q1 A2 q2", "0 4 -", ""),
        ("q1 A1 q2 A2 q3 A3@ A4<q3", "q1 A1 q3 A3 q4", "0 1 4 5 -", "6"),
    ],
)
def test_what_a_client_sends_is_aligned_by_position(stored, sent, pairs, hidden):
    found = laid(stored, sent)
    told = {at: str(here) for at, here in found.pairs.items()}
    told |= {at: f"e{here}" for at, here in found.edits.items()}
    told |= {at: f"a{here}" for at, here in found.answers.items()}
    assert " ".join(told.get(at, "-") for at in range(len(sent.split()))) == pairs
    assert " ".join(map(str, sorted(found.hidden))) == hidden


@pytest.mark.parametrize(
    ("stored", "sent", "after"), [("q1 A1", "q1", "A1"), ("q1 A1 q2 A2", "summary q2", "A2")]
)
def test_an_answer_that_is_to_be_continued_stays(stored, sent, after):
    found = laid(stored, sent, after)
    assert found.pairs[len(sent.split()) - 1] == len(stored.split()) - 2
    assert not found.hidden


@pytest.mark.parametrize("size", [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sent", [["ok"], ["ok", "Sure"], ["ok", "Sure", "x"], ["x"]])
@pytest.mark.parametrize("stored", [["ok"], ["ok", "Sure"], ["ok@", "Sure@", "ok", "Sure"]])
def test_long_lists_of_the_same_words_are_aligned_in_linear_time(stored, sent, size):
    def steps(times: int) -> int:
        ours, theirs = transcript(*(stored * times)[:times]), list_of(*(sent * times)[:times])
        return steps_of(align, ours, theirs, times - 1)

    assert steps(4 * size) < 6 * steps(size)


class Chat:
    """A client with a tree of messages, of which it sends one path, and the transcript that follows it."""

    def __init__(self) -> None:
        self.stored: list[Message] = []
        self.path: list[str] = []
        self.paths: list[list[str]] = []
        self._ids = count()

    def ask(self, question: str, reply: str, *, wrapped: bool = False, trimmed: int = 0) -> None:
        """Ask after the path; the client has the question without its template from then on."""
        asked = f"({question})" if wrapped else question
        history = tuple(Said(*words_of(text)) for text in self.path[trimmed:])  # type: ignore[arg-type]
        found = compared(self.stored, ClientTurn(history), words_of(asked)[1])
        assert not found.edits
        assert found.answer is None
        self.stored = [
            replace(one, gone=one.id in found.hidden or (one.gone and one.id not in found.back))
            for one in self.stored
        ]
        self._store(reply, found.question or self._store(asked, found.follows))
        self.path = [*self.path, question, reply]
        self.paths.append(self.path)

    def _store(self, text: str, follows: str | None) -> str:
        role, words = words_of(text)
        self.stored.append(Message(str(next(self._ids)), "c", role, "ana", words, EVER, follows=follows))  # type: ignore[arg-type]
        return self.stored[-1].id

    def current(self) -> list[str]:
        return [
            one.text.removeprefix("Use this:\n").removesuffix("\nand that.")
            for one in self.stored
            if not one.gone
        ]


steps = st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 9)), max_size=12)


@given(steps)
def test_what_holds_is_the_path_that_the_client_is_on(told):
    chat = Chat()
    chat.ask("hello", "Hello")
    for at, (branch, wrapped, trimmed) in enumerate(told):
        chat.path = chat.paths[branch % len(chat.paths)]
        goes_on = chat.path == chat.current()
        cut = 2 * (trimmed % max(1, len(chat.path) // 2)) if goes_on else 0
        chat.ask(f"q{at}", f"A{at}", wrapped=wrapped, trimmed=cut)
        assert chat.current() == chat.path


@given(st.lists(st.tuples(st.sampled_from(["ok", "no"]), st.sampled_from(["Sure", "Hm"]), st.integers(0, 9))))
def test_a_client_that_leaves_out_what_it_likes_replaces_nothing(told):
    chat = Chat()
    chat.ask("hello", "Hello")
    for question, reply, window in told:
        if window == 0 and len(chat.path) == 2:
            continue  # the only exchange
        whole, chat.path = chat.path, chat.path[len(chat.path) - 2 * window :] if window else []
        chat.ask(question, reply)
        chat.path = [*whole, question, reply]
        assert chat.current() == chat.path


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["ok", "no"]), st.sampled_from(["Sure", "Hm"]))))
def test_a_path_of_repeated_words_is_followed_too(told):
    chat = Chat()
    chat.ask("hello", "Hello")
    for branch, question, reply in told:
        chat.path = chat.paths[branch % len(chat.paths)]
        if [*chat.path, question, reply] in chat.paths:
            continue  # by its words alone nobody can tell it from the one before
        chat.ask(question, reply)
        assert chat.current() == chat.path


told = st.lists(st.sampled_from(["ok", "no", "Sure", "Hm"]), max_size=8)


@given(told, told, st.sampled_from(["ok", "no"]), told)
def test_whatever_is_sent_is_followed_in_its_order_and_replaces_nothing_of_itself(
    stored, sent, question, after
):
    history, later = (tuple(Said(*words_of(text)) for text in texts) for texts in (sent, after))
    transcribed = transcript(*stored)
    found = align(transcribed, list_of(*sent, question, *after), len(sent))
    path = [here for _, here in sorted((found.pairs | found.edits).items())]
    assert path == sorted(set(path))
    replaces = compared(transcribed, ClientTurn(history, later), question)
    assert not replaces.hidden & {transcribed[here].id for here in path}
