"""A text in one or more messages, which changes."""

import pytest

from agent.surfaces.bots.posted import Gone, PostedText


class Board:
    """A channel: messages by their numbers."""

    def __init__(self) -> None:
        self.messages: dict[int, str] = {}
        self.did: list[str] = []
        self.faults = 0

    async def post(self, text: str) -> int:
        self._maybe_fail()
        number = len(self.did)
        self.messages[number] = text
        self.did.append("post")
        return number

    async def edit(self, number: int, text: str) -> None:
        self._maybe_fail()
        if number not in self.messages:
            raise Gone
        self.messages[number] = text
        self.did.append("edit")

    async def remove(self, number: int) -> None:
        self.did.append("remove")
        if self.messages.pop(number, None) is None:
            raise Gone

    def _maybe_fail(self) -> None:
        if self.faults:
            self.faults -= 1
            raise ConnectionError


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def posted(board: Board) -> PostedText[int]:
    return PostedText(100, board.post, board.edit, board.remove)


A, B, C = "a" * 90 + "\n", "b" * 90 + "\n", "c" * 90 + "\n"


async def test_a_growing_text_is_edited_and_goes_on_in_further_messages(
    board: Board, posted: PostedText[int]
) -> None:
    for text in ("aa", A, A + "b", A + B + C):
        await posted.show(text)
    assert list(board.messages.values()) == [A, B, C]
    assert board.did == ["post", "edit", "edit", "edit", "post", "post"]
    assert posted.handles == list(board.messages)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("text", ["text\n\none\ntwo"]),
        ("", ["one\ntwo"]),
        ("a" * 92, ["a" * 92, "one\ntwo"]),
        (A + "b" * 92, [A, "b" * 92, "one\ntwo"]),
    ],
)
async def test_what_stands_below_is_not_divided(
    board: Board, posted: PostedText[int], text: str, shown: list[str]
) -> None:
    await posted.show(text, "one\ntwo")
    assert list(board.messages.values()) == shown


async def test_what_has_not_changed_is_left_alone(board: Board, posted: PostedText[int]) -> None:
    await posted.show(A + B)
    await posted.show(A + B)
    assert board.did == ["post", "post"]


async def test_a_shorter_text_takes_the_messages_it_no_longer_needs_away(
    board: Board, posted: PostedText[int]
) -> None:
    await posted.show(A + B + C)
    await posted.show("short")
    assert list(board.messages.values()) == ["short"]


async def test_what_somebody_else_took_away_is_posted_again(board: Board, posted: PostedText[int]) -> None:
    await posted.show("one")
    board.messages.clear()
    await posted.show("two")
    assert list(board.messages.values()) == ["two"]
    await posted.show(A + B)
    board.messages.clear()
    await posted.show("three")
    assert list(board.messages.values()) == ["three"]


async def test_after_a_fault_the_next_call_goes_on(board: Board, posted: PostedText[int]) -> None:
    await posted.show(A)
    board.faults = 1
    with pytest.raises(ConnectionError):
        await posted.show(A + B)
    await posted.show(A + B)
    assert list(board.messages.values()) == [A, B]


async def test_an_empty_text_leaves_the_first_message_as_it_is(board: Board, posted: PostedText[int]) -> None:
    await posted.show("")
    assert board.messages == {}
    await posted.show(A + B)
    await posted.show("")
    assert list(board.messages.values()) == [A]
