"""Describe messages of a chat platform, what a turn needs of the platform, and which messages to answer."""

import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from agent.surfaces.bots.answers import Answer, Item
from agent.surfaces.bots.attachments.attachment import Attachment
from memory.audience import Place
from memory.people.places import Listening

log = logging.getLogger("hachi.bots")

Key = TypeVar("Key")
Value = TypeVar("Value")
MAX_QUOTED = 2_000
"""Characters of a message that another one replies to or forwards."""
MAX_THREAD = 50
"""Messages of a thread that are looked at."""
_READ = frozenset("title description name value text content pretext fallback alt_text topic".split())
"""The keys under which the objects of platforms hold what people read."""
_ACTS = frozenset({2, 3, 5, 6, 7, 8, "actions", "button", "input"})
"""The types of what people press or fill in, on Discord and on Slack."""
Label = Callable[[str, str, Place], Awaitable[str]]
"""`await label(name, user, place)`: what a person of this name is called in the place, so that two people of
one name are told apart."""
ASK_AGAIN = timedelta(hours=1)
"""After so long it is asked again what may have changed on the platform."""


class Hourly(Generic[Key, Value]):
    """Cache what a platform answers to `ask` for an hour. If it answers None, the last answer stays valid."""

    def __init__(self, ask: Callable[[Key], Awaitable[Value | None]], clock: Callable[[], datetime]) -> None:
        self._ask, self._clock = ask, clock
        self._cache: dict[Key, tuple[Value, datetime]] = {}

    async def get(self, key: Key) -> Value | None:
        cached, asked_at = self._cache.get(key, (None, None))
        if asked_at and self._clock() - asked_at <= ASK_AGAIN:
            return cached
        if (answer := await self._ask(key)) is None:
            return cached
        self._cache[key] = answer, self._clock()
        return answer


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message that people write. Its content is read when its turn starts."""

    user: str
    """The author's id across platforms: ``discord:1234``."""
    place: Place
    conversation: str | None = None
    """None selects the user's private conversation, or that of the place."""
    source: Any = None
    """The platform's own message, needed to read and answer it."""
    origin: str = ""
    """The message's id across platforms: ``discord:1234``."""
    addressed: bool = True
    """Whether it is private, mentions the bot or replies to it."""
    to_others: bool = False
    """Whether it is to somebody else."""
    in_thread: bool = False
    """Whether it is in a thread, which may go on without mentions."""
    follows_bot: bool = False
    """Whether the bot began the thread."""
    version: str = ""
    """When it was last edited, as the platform says it; empty if it never was."""
    late: bool = False
    """Whether it came so long ago that it is not answered any more: the talk may have gone on."""
    job: str = ""
    """The id of the job to answer it."""
    posts: tuple[str, ...] = ()
    """The platform's ids of messages in which a reply to it stands already: it is written there."""

    @property
    def queue(self) -> str:
        if self.conversation is not None:
            return self.conversation
        return f"dm:{self.user}" if self.place.private else self.place.key


@dataclass(frozen=True, slots=True)
class Content:
    author: str
    """The author's name, as other people see it."""
    text: str
    """With the names of people instead of their ids."""
    attachments: Sequence[Attachment] = ()
    place: str = ""
    """What the place is called."""
    zone: str | None = None
    """The author's time zone, if the platform tells it: an IANA name."""
    replies_to: "NearbyMessage | None" = None
    """The message that it replies to."""


class Unreadable(Exception):
    """Raised by `Platform.fetch` for a message that the platform does not show the bot, or not any more."""


class NearbyMessage(NamedTuple):
    """A message around the one that is read: of its thread, or the one that it replies to."""

    user: str
    """Empty for the bot."""
    addressed: bool = False
    to_others: bool = False
    origin: str = ""
    source: Any = None
    """The platform's own message."""


class Thread(NamedTuple):
    lines: Sequence[NearbyMessage] = ()
    """Its first message, and the newest before the one that is read, oldest first."""
    title: str = ""


class Posts(Protocol):
    """The messages in which one reply appears. Each call may raise."""

    limit: int
    """UTF-16 code units that a message holds."""

    def origin(self, handle: Any) -> str:
        """Return the id across platforms of a message that was posted."""

    def handle(self, origin: str) -> Any:
        """Return the handle of a message that was posted earlier."""

    def markup(self, text: str) -> str:
        """Return the text in the platform's markup."""

    async def post(self, text: str, *, final: bool) -> Any:
        """Post a message and return its handle. If it is not final, its author can stop what follows. Raises
        Gone if the bot may not write there."""

    async def edit(self, handle: Any, text: str) -> None:
        """Edit a message. Raises Gone if a person deleted it, and Closed if it may not be edited any more."""

    async def remove(self, handle: Any) -> None:
        """Delete a message, unless somebody did."""

    def footer(self, receipts: Sequence[Item]) -> str:
        """Return what stands below the text of the reply."""

    async def conclude(self, handles: Sequence[Any], receipts: Sequence[Item]) -> None:
        """End the reply: its text is final. Show what was remembered, with buttons."""

    async def ask(self, question: Answer) -> Any:
        """Show a question with buttons to the author of the message. Returns the handle of a message that
        others see too, which goes with the reply; None of one that they do not."""


class Platform(Protocol):
    edit_seconds: float
    """Seconds between two edits of a reply that is being generated."""

    async def read(self, message: IncomingMessage) -> Content: ...

    async def may_read(self, user: str, places: Sequence[Place]) -> Mapping[Place, str]:
        """Return what those of these places are called that the person can read now, history included, and
        an empty text for the others; nothing for those of which the platform does not say. May raise."""

    async def thread(self, message: IncomingMessage) -> Thread:
        """Return the thread that the message is in. May raise."""

    async def quote(self, line: NearbyMessage, message: IncomingMessage) -> str:
        """Return the line as `name: text` for who reads the message, with what else it holds in words; empty
        if nothing of it can be told."""

    async def files_of(self, line: NearbyMessage) -> Sequence[Attachment]:
        """Return the files that came with the line, and with what it forwards."""

    async def show_busy(self, message: IncomingMessage) -> None:
        """Show a typing indicator or a status until it is cancelled. May raise."""

    async def fetch(self, origin: str) -> IncomingMessage | None:
        """Return a person's message as it is now; None if it is gone. Raises Unreadable, and may raise."""

    def reply_to(self, message: IncomingMessage) -> Posts: ...

    def posts_at(self, origin: str) -> Posts:
        """Return the posts among which is one with this id, to edit and to remove them."""

    async def write(self, user: str, place: Place, answer: Answer, asked_in: str = "") -> str:
        """Write to a person in the place, in the thread of the message with the origin `asked_in`. Returns
        the id of the post; empty if the bot is not allowed to write there."""


def quoted(what: str, author: str, text: str) -> str:
    """Quote somebody else, marked as data; `what` says how the text came here, such as `forwarded`."""
    by = f" {author}" if author else ""
    return f"({what}{by}, not written by the sender: “{text[:MAX_QUOTED]}”)"


def described(what: str, data: Any, besides: str = "") -> str:
    """Return in words what a message holds that is no text, such as a poll, an embed or blocks: its texts, in
    order, without those that stand in the text `besides`; empty if there are none."""
    texts = dict.fromkeys(" ".join(text.split()) for text in _texts(data))
    shortened = "; ".join(text for text in texts if text and text not in besides)
    return f"({what}: {shortened[:MAX_QUOTED]})" if shortened else ""


def _texts(data: Any) -> Iterator[str]:
    """Yield what people read of a platform's object. Buttons and menus only act."""
    if isinstance(data, Mapping) and data.get("type") not in _ACTS:
        for key, value in data.items():
            if isinstance(value, str):
                yield from [value] * (key in _READ)
            else:
                yield from _texts(value)
    elif isinstance(data, list | tuple):
        for one in data:
            yield from _texts(one)


def without_call(text: str, bot: str) -> str:
    """Return the text without a mention of the bot at its start or end, and the comma or colon that ends the
    mention; another colon begins an emoji. `bot` is a pattern that matches its mentions."""
    return re.sub(rf"^(?:\s*(?:{bot})(?:[,:]+(?=\s|$))?\s*)+|(?:\s*(?:{bot}))+\s*$", "", text)


def moment(seconds: str) -> str:
    """Return a time that a platform shows by the reader's clock, in words."""
    try:
        return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "some time"


def should_answer(listening: Listening, message: IncomingMessage) -> bool | None:
    """Return whether to answer; None if that depends on the thread, by `continues`."""
    if listening == "nothing" or (message.to_others and not message.addressed):
        return False
    if message.addressed or listening == "everything":
        return True
    return None if message.in_thread else False


def continues(user: str, thread: Sequence[NearbyMessage]) -> bool:
    """Return whether a message of the user that follows the thread goes on a talk with the bot: since the
    bot's answer to whoever called it last, nobody else has written in the thread, and nothing was to
    others. Where people talk to each other, the bot waits until it is called again."""
    called = max((at for at, line in enumerate(thread) if line.user and line.addressed), default=-1)
    answers = [at for at, line in enumerate(thread) if not line.user and at > called]
    if called < 0 and not answers:
        return False
    since = thread[answers[0] if answers else called :]
    people = [line for line in since if line.user]
    return all(line.user == user and (line.addressed or not line.to_others) for line in people)
