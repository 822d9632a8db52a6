"""What a client sends, laid beside the stored messages."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

import pytest
from effort import steps_of
from hypothesis import given
from hypothesis import strategies as st

from agent.turn.client.alignment import Alignment, Key, align
from agent.turn.client.history import Compared, compared
from agent.types.client import ClientTurn, MessageItem
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
        ("q1 A1 q2 A2", "x A1 q2 A2 q3", "c0 1 2 3 -", ""),
        ("q1 A1 q2 A2 q3 A3", "q1 A1 x A2 q3 A3 q4", "0 1 c2 3 4 5 -", ""),
        ("q1 A1 q2 A2", "summary A2 q3", "- 3 -", ""),  # which is none
        # answers that were shown otherwise
        ("q1 A1 q2 A2", "q1 Edited q2 A2 q3", "0 c1 2 3 -", ""),
        ("q1 A1 q2 A2", "q1 Edited q2", "0 c1 2", "3"),
        ("q1 A1 q2 A2", "q1 A1 q2 Stopped q3", "0 1 2 c3 -", ""),
        ("q1 A1 q2 A2 q3 A3", "q1 A1 x Stopped q4", "0 1 c2 c3 -", "4 5"),
        ("q1 A1 q2 A2 more A3", "q1 A1 q2 A3 q4", "0 1 2 c3 -", "4 5"),  # more concise
        ("q1 A1 q2 A2 q3 A3", "q1 A1 x X q3 A3 q4", "0 1 - - 4 5 -", ""),  # perhaps a summary
        ("q1 A1 q2", "q1 A1 q2 Stopped q3", "0 1 2 a2 -", ""),
        ("q1 A1 More<q1", "q1 A1More q2", "0 c1 -", "2"),
        ("q1 A1", "q1 Text A1 q2", "0 - 1 -", ""),  # beside a call of a tool
        ("q1 A1 q2 A2 More<q2", "A2More q3", "c3 -", "4"),  # after a compaction
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
    told |= {at: f"c{here}" for at, here in found.changed.items()}
    told |= {at: f"a{here}" for at, here in found.answers.items()}
    assert " ".join(told.get(at, "-") for at in range(len(sent.split()))) == pairs
    assert " ".join(map(str, sorted(found.hidden))) == hidden


@pytest.mark.parametrize("size", [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sent", [["ok"], ["ok", "Sure"], ["ok", "Sure", "x"], ["x"]])
@pytest.mark.parametrize("stored", [["ok"], ["ok", "Sure"], ["ok@", "Sure@", "ok", "Sure"]])
def test_long_lists_of_the_same_words_are_aligned_in_linear_time(stored, sent, size):
    def steps(times: int) -> int:
        ours, theirs = transcript(*(stored * times)[:times]), list_of(*(sent * times)[:times])
        return steps_of(align, ours, theirs, times - 1)

    assert steps(4 * size) < 6 * steps(size)


@dataclass(eq=False)
class Line:
    shown: str
    """In the client."""
    stored: str
    """Here; empty if it is not."""


class Chat:
    """A client with a tree of messages, of which it shows one path, and the transcript that follows it."""

    def __init__(self) -> None:
        self.stored: list[Message] = []
        self.path: list[Line] = []
        self.paths: list[list[Line]] = []
        self._ids = count()
        self._words = count()

    def ask(self, question: str = "", *, wrapped: bool = False, left_out: int = 0, reply: str = "") -> None:
        """Ask after the path, of which the first may be left out while it is the current one. The client
        has the question without its template from then on."""
        here = [line.shown for line in self.path] == self.current()
        self._send(self.path[left_out * here :], Line(question or self._new("q"), ""), wrapped, reply)

    def answer_again(self, at: int, *, question: bool = False) -> None:
        """Answer a question anew; or another `question` in its place."""
        line = Line(self._new("q"), "") if question else self.path[at]
        self.path = self.path[:at]
        self._send(self.path, line, begins=not at)

    def save(self, at: int) -> None:
        """Change a line, and send nothing; between two that were changed nobody could tell its place."""
        beside = self.path[max(0, at - 1) : at] + self.path[at + 1 : at + 2]
        if all(one.shown == one.stored for one in beside):
            self.path[at].shown = self._new("q" if self.path[at].shown[0] == "q" else "A")

    def go_on(self) -> None:
        """Have the last answer continued, which shows both as one."""
        *before, question, answer = self.path
        more = self._new("A")
        self._send(before, question, reply=more, after=answer.shown, begins=not before)
        answer.shown += f" and {more}"

    def shorten(self) -> None:
        """Have the last answer made anew by a question that the client does not show."""
        self.ask()
        shown = self.paths.pop()
        self.path = [*shown[:-3], Line(shown[-1].shown, shown[-3].stored)]

    def _new(self, kind: str) -> str:
        return f"{kind}{next(self._words)}"

    def _send(
        self,
        history: list[Line],
        question: Line,
        wrapped: bool = False,
        reply: str = "",
        after: str = "",
        begins: bool = False,
    ) -> None:
        said = tuple(MessageItem(*words_of(one.shown)) for one in history)  # type: ignore[arg-type]
        later = (MessageItem("assistant", after),) if after else ()
        asked = f"({question.shown})" if wrapped else question.shown
        found = compared(self.stored, ClientTurn(said, later, begins=begins), words_of(asked)[1])
        follows = self._follow(found)
        id = found.question or self._store(asked, follows)
        for line in (*history, question):
            line.stored = line.shown
        answer = Line(reply or self._new("A"), "")
        if reply != STOPPED:
            self._store(answer.shown, id)
            answer.stored = answer.shown
        self.path = [*self.path, *([] if self.path[-2:-1] == [question] else [question, answer])]
        self.paths.append(self.path)

    def _follow(self, found: Compared) -> str:
        """What `follow` of `agent.turn.client.history` does in SQL."""
        self.stored = [
            replace(one, gone=one.id in found.hidden or (one.gone and one.id not in found.back))
            for one in self.stored
        ]
        ids: dict[str, str] = {}
        follows = found.follows or ""
        for change in found.changes:
            if change.old is None:
                return self._store(change.text, ids.get(change.question.id, change.question.id))
            at = next(at for at, one in enumerate(self.stored) if one.id == change.old.id)
            old = self.stored[at]
            new = replace(old, id=str(next(self._ids)), text=change.text, gone=False)
            ids[old.id] = new.id
            self.stored[at] = new
            self.stored.append(replace(old, gone=True))
            moved = ({"follows": new.id} if one.follows == old.id else {} for one in self.stored)
            self.stored = [replace(one, **to) for one, to in zip(self.stored, moved, strict=True)]
        return ids.get(follows, follows)

    def _store(self, text: str, follows: str) -> str:
        role, words = words_of(text)
        self.stored.append(Message(str(next(self._ids)), "c", role, "ana", words, EVER, follows=follows))  # type: ignore[arg-type]
        return self.stored[-1].id

    def current(self) -> list[str]:
        texts = [one.text for one in self.stored if not one.gone]
        return [text.removeprefix("Use this:\n").removesuffix("\nand that.") for text in texts]


STOPPED = "A stopped one"
acts = st.sampled_from(["ask", "again", "edit", "save", "go on", "shorten", "stop", "branch"])


@given(st.lists(st.tuples(acts, st.integers(0, 20), st.booleans(), st.integers(0, 20)), max_size=14))
def test_what_the_person_saw_is_what_is_stored_and_what_was_not_sent_stays(told):
    chat = Chat()
    chat.ask()
    changed = False  # what is changed on one branch may have no place on another that the client goes back to
    for act, number, wrapped, left_out in told:
        at = number % len(chat.path)
        changed |= act in {"save", "go on", "shorten", "stop"}
        sent = all(line.shown == line.stored for line in chat.path)
        match act:
            case "save":
                chat.save(at)
            case "go on" if chat.path[-1].stored:
                chat.go_on()
            case "shorten":
                chat.shorten()
            case "stop":
                chat.ask(reply=STOPPED)
            case "again" | "edit" if sent:
                chat.answer_again(at - at % 2, question=act == "edit")
            case "branch" if sent and not changed:
                chat.path = chat.paths[number % len(chat.paths)]
            case _:
                chat.ask(wrapped=wrapped, left_out=left_out)
                assert chat.current() == [line.shown for line in chat.path]
    chat.ask()
    assert chat.current() == [line.shown for line in chat.path]


words = st.tuples(st.integers(0, 9), st.sampled_from(["ok", "no"]), st.sampled_from(["Sure", "Hm"]))


@given(st.lists(words))
def test_a_client_that_leaves_out_what_it_likes_replaces_nothing_of_repeated_words(told):
    chat = Chat()
    chat.ask("hello", reply="Hello")
    for window, question, reply in told:
        if window or len(chat.path) > 2:  # not the only exchange
            chat.ask(question, reply=reply, left_out=max(0, len(chat.path) - 2 * window))
            assert chat.current() == [line.shown for line in chat.path]


@given(st.lists(words))
def test_a_path_of_repeated_words_is_followed_too(told):
    chat = Chat()
    chat.ask("hello", reply="Hello")
    for branch, question, reply in told:
        chat.path = chat.paths[branch % len(chat.paths)]
        shown = [[line.shown for line in path] for path in chat.paths]
        if [*(line.shown for line in chat.path), question, reply] in shown:
            continue  # by its words alone nobody can tell it from the one before
        chat.ask(question, reply=reply)
        assert chat.current() == [line.shown for line in chat.path]


told = st.lists(st.sampled_from(["ok", "no", "Sure", "Hm"]), max_size=8)


@given(told, told, st.sampled_from(["ok", "no"]), st.lists(st.sampled_from(["Sure", "Hm"]), max_size=8))
def test_whatever_is_sent_is_followed_in_its_order_and_replaces_nothing_of_itself(
    stored, sent, question, after
):
    history, later = (tuple(MessageItem(*words_of(text)) for text in texts) for texts in (sent, after))
    transcribed = transcript(*stored)
    found = align(transcribed, list_of(*sent, question, *after), len(sent))
    path = [here for _, here in sorted(found.path.items())]
    assert path == sorted(set(path))
    replaces = compared(transcribed, ClientTurn(history, later), question)
    assert not replaces.hidden & {transcribed[here].id for here in path}
