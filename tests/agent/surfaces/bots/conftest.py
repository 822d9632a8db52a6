"""A companion with a scripted model, and a small chat platform in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import mcp_weather
import pytest
from scripted_server import ScriptedServer

from agent.surfaces.bots.answers import Answer, Item
from agent.surfaces.bots.attachments.attachment import Attachment
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.platform import Content, IncomingMessage, NearbyMessage, Thread, Unreadable
from agent.surfaces.bots.streamed_reply import Gone
from agent.turn.mcp_servers.connection import Connection
from agent.turn.mcp_servers.file import McpServer
from hachi import Companion
from memory.audience import Place
from memory.people import check_ins

OpenPet = Callable[..., Awaitable[Companion]]


@pytest.fixture
async def pet(open_pet: OpenPet, server: ScriptedServer) -> Companion:
    return await open_pet(
        openai_base_url=server.url,
        openai_api_key="sk-test",
        model="tiny",
        api="chat",
        consolidate="plain",
        model_retries=0,
    )


class FakePosts:
    """Messages by number, and the calls that made them."""

    limit = 100

    def __init__(
        self, message: IncomingMessage | None = None, replies: "list[FakePosts] | None" = None
    ) -> None:
        self.message = message
        self.replies = [] if replies is None else replies
        """All replies on the platform."""
        self.number = len(self.replies)
        self.messages: dict[int, str] = {}
        self.calls: list[str] = []
        self.receipts: Sequence[Item] | None = None
        """None until the reply is concluded."""
        self.question: Answer | None = None
        self.failures = 0
        """So many calls fail."""
        self.keeps = False
        """Whether the bot may not delete there."""
        self.fixed = False
        """Whether it may not edit."""

    @property
    def texts(self) -> list[str]:
        return list(self.messages.values())

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the platform is away")

    def origin(self, handle: int) -> str:
        return f"chat:{self.number}:{handle}"

    def handle(self, origin: str) -> int:
        """A reply that stands already is that one."""
        _, number, id = origin.split(":")
        if int(number) != self.number:
            self.replies.remove(self)
            self.__dict__ = self.replies[int(number)].__dict__
        return int(id)

    def markup(self, text: str) -> str:
        return text

    async def post(self, text: str, *, final: bool) -> int:
        self._called("post")
        self.messages[len(self.calls)] = text
        return len(self.calls)

    async def edit(self, handle: int, text: str) -> None:
        self._called("edit")
        if self.fixed:
            raise PermissionError("may not edit")
        if handle not in self.messages:
            raise Gone
        self.messages[handle] = text

    async def remove(self, handle: int) -> None:
        self._called("remove")
        if self.keeps:
            raise PermissionError("may not delete")
        self.messages.pop(handle, None)

    def footer(self, receipts: Sequence[Item]) -> str:
        return "\n".join(item.text for item in receipts)

    async def conclude(self, handles: Sequence[int], receipts: Sequence[Item]) -> None:
        self._called("conclude")
        self.receipts = receipts

    async def ask(self, question: Answer) -> None:
        self._called("ask")
        self.question = question


class FakePlatform:
    """Messages carry their `Content` as `source`."""

    edit_seconds = 0.01

    def __init__(self) -> None:
        self.replies: list[FakePosts] = []
        self.busy: list[bool] = []
        self.away = False
        self.around = Thread()
        self.there: dict[str, IncomingMessage] = {}
        """Origin → what people wrote that can still be read."""
        self.files: dict[str, Sequence[Attachment]] = {}
        """Origin → what came with a message that is replied to."""
        self.readable: dict[Place, str] = {}
        """What the places are called that everybody can read."""
        self.asked: list[tuple[str, Sequence[Place]]] = []
        """Who could read which places was asked."""
        self.unreadable: set[str] = set()
        """The origins of what the bot may not read."""

    async def read(self, message: IncomingMessage) -> Content:
        content: Content = message.source
        return content

    async def may_read(self, user: str, places: Sequence[Place]) -> Mapping[Place, str]:
        self.asked.append((user, places))
        if self.away:
            raise OSError("away")
        return {place: self.readable.get(place, "") for place in places}

    async def thread(self, message: IncomingMessage) -> Thread:
        return self.around

    async def quote(self, line: NearbyMessage, message: IncomingMessage) -> str:
        return str(line.source)

    async def files_of(self, line: NearbyMessage) -> Sequence[Attachment]:
        return self.files.get(line.origin, ())

    async def show_busy(self, message: IncomingMessage) -> None:
        self.busy.append(True)
        try:
            await asyncio.Event().wait()
        finally:
            self.busy.append(False)

    async def write(self, user: str, place: Place, answer: Answer, asked_in: str = "") -> str:
        return "chat:post"

    async def fetch(self, origin: str) -> IncomingMessage | None:
        if origin in self.unreadable:
            raise Unreadable
        return self.there.get(origin)

    def posts_at(self, origin: str) -> FakePosts:
        return self.replies[int(origin.split(":")[1])]

    def reply_to(self, message: IncomingMessage) -> FakePosts:
        self.replies.append(FakePosts(message, self.replies))
        self.replies[-1].limit = 2_000
        self.replies[-1].failures = 99 * self.away
        return self.replies[-1]

    @property
    def said(self) -> list[str]:
        """The text of each reply."""
        return ["".join(reply.texts) for reply in self.replies]


@pytest.fixture
def platform() -> FakePlatform:
    return FakePlatform()


@pytest.fixture
def posts() -> FakePosts:
    return FakePosts()


@pytest.fixture
async def conversations_with(
    pet: Companion, platform: FakePlatform
) -> AsyncIterator[Callable[..., Conversations]]:
    made: list[Conversations] = []

    def make(**options: Any) -> Conversations:
        made.append(Conversations(pet, platform, **{"burst_seconds": 0.002} | options))
        return made[-1]

    yield make
    for conversations in made:
        await conversations.stop(0)


@pytest.fixture
def conversations(conversations_with: Callable[..., Conversations]) -> Conversations:
    return conversations_with()


@pytest.fixture
async def clouds(pet: Companion, tmp_path: Path) -> AsyncIterator[Callable[[], list[str]]]:
    """Anybody may have `sky_move_clouds` called, which changes something. `clouds()`: the arguments of the
    calls that were run."""
    file = tmp_path / "clouds"
    file.touch()
    server = mcp_weather.BADLY | {"env": {"CLOUDS": str(file)}, "places": ["*"]}
    sky = Connection("sky", McpServer.model_validate(server), frozenset())
    object.__setattr__(pet.components.extensions, "connections", [sky])
    yield lambda: file.read_text().splitlines()
    await sky.close()


@pytest.fixture
def plan(pet: Companion) -> Callable[[str, str], Awaitable[None]]:
    """`await plan(user, about)`: the user wants to be asked about it in a minute, and told of it just now."""

    async def planned(user: str, about: str) -> None:
        await pet.check_ins.want(True, user=user)
        said = next(one for one in await pet.conversations.messages(user=user) if one.role == "user")
        now, parts = pet.clock(), pet.components
        async with parts.database.write() as connection:
            after = now + timedelta(minutes=1)
            await check_ins.plan(connection, user, about, after, [said.id], said.conversation_id, now)

    return planned
