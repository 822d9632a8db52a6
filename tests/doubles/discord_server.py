"""Discord on 127.0.0.1 for a real discord.py: the API, the gateway and the limits that a bot meets.

    async with DiscordServer.running() as discord:
        ...                                   # with DiscordServer's addresses set in discord.py
        await discord.say("hello", by=ANA, channel=DM)
        assert discord.shown(DM) == ["Hello, Ana."]

It refuses what Discord refuses: empty messages and those over 2,000 UTF-16 code units, unknown messages and
channels, buttons with long or equal ids, and replies in channels whose history the bot may not read. It also
refuses a second answer to an interaction, and one after three seconds (15 minutes for follow-ups). A repeated
nonce returns the first message. The messages of a history lack their authors' roles. The fixed fields of its
objects are in discord.json.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from pathlib import Path
from time import monotonic
from typing import Any

from aiohttp import WSMsgType, web

TOKEN = "a-bots-token"
SNOWFLAKE = 2 * 10**18
"""Ids have up to 19 digits and grow with time. These are from the year 2030."""
BOT = SNOWFLAKE + 900_000
APPLICATION = BOT + 1
ROLE = BOT + 2
"""The bot's own role in the server."""
GUILD = SNOWFLAKE + 100
GENERAL, RANDOM, DM, GROUP = range(SNOWFLAKE + 201, SNOWFLAKE + 205)
ANA, BEN, ANOTHER_BOT = range(SNOWFLAKE + 11, SNOWFLAKE + 14)
NAMES = {ANA: "Ana", BEN: "Ben", ANOTHER_BOT: "Robo", BOT: "Hachi"}
LIMIT = 2_000

ACKNOWLEDGE_SECONDS, TOKEN_SECONDS = 3, 15 * 60
"""Seconds that an interaction waits for its first answer, and that it accepts further ones."""
EPHEMERAL = 64
EVERYBODY_MAY = 0x400 | 0x800
MANAGES = EVERYBODY_MAY | 0x10

Json = dict[str, Any]
TEMPLATES: dict[str, Json] = json.loads(Path(__file__).with_name("discord.json").read_text("utf-8"))


@dataclass
class Posted:
    """A message of the bot, with all versions of its text."""

    id: int
    channel: int
    body: Json
    texts: list[str]
    deleted: bool = False
    ephemeral: bool = False

    @property
    def text(self) -> str:
        return self.texts[-1]

    @property
    def pings(self) -> set[str]:
        """Return who is notified: ids of people, `everyone`, and `replied` for the author of the message that
        it replies to."""
        allowed = self.body.get("allowed_mentions")
        parse = {"everyone", "users", "roles"} if allowed is None else set(allowed.get("parse", ()))
        listed = {str(id) for id in (allowed or {}).get("users", ())}
        woken = {id for id in re.findall(r"<@!?(\d+)>", self.text) if "users" in parse or id in listed}
        if re.search("@everyone|@here", self.text) and "everyone" in parse:
            woken.add("everyone")
        if self.body.get("message_reference") and (allowed is None or allowed.get("replied_user")):
            woken.add("replied")
        return woken

    @property
    def buttons(self) -> list[Json]:
        return [button for row in self.body.get("components") or () for button in row["components"]]

    def button(self, label: str) -> Json:
        """Return the only button with this label."""
        [found] = [button for button in self.buttons if button["label"] == label]
        return found


@dataclass
class Interaction:
    """A command, a pressed button or a sent form, with the bot's answers."""

    id: int
    user: int
    channel: int
    on: Posted | None = None
    answered: str = ""
    """The kind of a deferred answer: `thinking` or `updating`."""
    ephemeral: bool = False
    original: Posted | None = None
    follow_ups: list[Posted] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    made_at: float = 0.0

    @property
    def answer(self) -> Posted:
        """Return the last message that the person sees."""
        shown = self.follow_ups[-1] if self.follow_ups else self.original
        assert shown is not None, "nothing was answered"
        return shown


class DiscordServer:
    """Discord's API and gateway. Its attributes record requests, hold what is shown, and make it fail."""

    def __init__(self) -> None:
        self.address = ""
        self.messages: dict[int, Posted] = {}
        self.interactions: dict[str, Interaction] = {}
        self.commands: list[Json] = []
        self.typed: Counter[int] = Counter()
        self.faults: list[Callable[[str, str], web.Response | None]] = []
        """Each may answer a request (method, path) in place of the server."""
        self.close_with: int | None = None
        """The code with which the gateway closes after the client identified."""
        self.closed_dms: set[int] = set()
        self.threads: dict[int, int] = {}
        """Thread → its parent channel."""
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []
        """The names of the files that were requested."""
        self.forget_guild = False
        """READY lists no servers, although messages come from one."""
        self.connected = asyncio.Event()
        self.too_odd = ""
        """Texts with this word are refused."""
        self.refused: list[tuple[int, Json]] = []
        self.lost_answers = 0
        """How many posted messages are answered with 502."""
        self.monotonic: Callable[[], float] = monotonic
        self.forums: set[int] = set()
        """The forum channels, whose threads are posts."""
        self.flags = 0
        """The flags of the application."""
        self.nicknames: dict[int, str] = {}
        """Person → nickname in the server."""
        self.gone: set[int] = set()
        """People who are not members of the server."""
        self.denied: dict[int, int] = {}
        """Channel → the permissions that everybody lacks there."""
        self.private_threads: dict[int, set[int]] = {}
        """Private thread → its members."""
        self.roles: dict[int, list[int]] = {}
        """Person → their roles in the server."""
        self.without_history: set[int] = set()
        """Channels whose history the bot may not read."""
        self._nonces: dict[str | None, Posted] = {}
        self._ids = count(SNOWFLAKE + 1_000_000)
        self._sequence = count(1)
        self.shards = 1
        """The number of connections that Discord recommends."""
        self.last_messages: dict[int, int] = {}
        """Channel → the newest message of a person there."""
        self.history: dict[int, list[Json]] = {}
        self._sockets: dict[int, list[web.WebSocketResponse]] = {}
        """Shard → the connections of all processes."""
        self._news = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator["DiscordServer"]:
        """Run a server on a free port of 127.0.0.1 during the block."""
        server = cls()
        app = web.Application()
        app.add_routes(server._routes())
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.address = f"127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield server
        finally:
            for socket in chain(*server._sockets.values()):
                await socket.close()
            await runner.cleanup()

    async def say(self, text: str, *, by: int = ANA, channel: int = DM, **other: Any) -> int:
        """Let a person write. Returns the id of the message; `other` are further fields."""
        message = self.written(text, by=by, channel=channel, **other)
        self.history.setdefault(channel, []).append(message)
        self.last_messages[channel] = int(message["id"])
        await self.send("MESSAGE_CREATE", message)
        return int(message["id"])

    async def edit(self, id: int, text: str, *, channel: int = DM) -> None:
        """Let a person edit a message."""
        [message] = [one for one in self.history[channel] if one["id"] == str(id)]
        mentioned = [id for id in NAMES if f"<@{id}>" in text]
        message |= {"content": text, "mentions": [_user(id) for id in mentioned]}
        message["edited_timestamp"] = f"2030-01-01T00:00:{next(self._sequence) % 60:02d}.000000+00:00"
        await self.send("MESSAGE_UPDATE", message)

    async def delete(self, id: int, *, channel: int = DM) -> None:
        """Delete a message of a person or the bot."""
        self.history[channel] = [m for m in self.history.get(channel, []) if m["id"] != str(id)]
        if id in self.messages:
            self.messages[id].deleted = True
        where = {} if channel in (DM, GROUP) else {"guild_id": str(GUILD)}
        await self.send("MESSAGE_DELETE", {"id": str(id), "channel_id": str(channel)} | where)

    def written(self, text: str, *, by: int = ANA, channel: int = DM, **other: Any) -> Json:
        message = self._message(next(self._ids), channel, by, text)
        mentioned = [id for id in NAMES if f"<@{id}>" in text or f"<@!{id}>" in text]
        message["mentions"] = [_user(id) for id in mentioned]
        message["mention_roles"] = [str(ROLE)] if f"<@&{ROLE}>" in text else []
        return message | other

    def reply_to(self, posted: Posted) -> Json:
        """Return the fields of a message that replies to one of the bot's."""
        return {
            "type": 19,
            "message_reference": {"message_id": str(posted.id), "channel_id": str(posted.channel)},
            "referenced_message": self._message(posted.id, posted.channel, BOT, posted.text),
        }

    def attach(self, name: str, type: str | None, content: bytes | None) -> Json:
        """Return an attachment of a message. Without content, Discord has lost the file."""
        url = f"http://{self.address}/files/{name}"
        if content is not None:
            self.files[name] = content
        about = {"id": str(len(self.files)), "filename": name, "content_type": type}
        return about | {"size": len(content or b""), "url": url, "proxy_url": url}

    async def command(
        self,
        name: str,
        *,
        by: int = ANA,
        channel: int = DM,
        may: int = EVERYBODY_MAY,
        context: int | None = None,
        **options: str,
    ) -> Interaction:
        """Let a person use a command; `done` is set when it is answered."""
        given = [{"name": key, "type": 3, "value": value} for key, value in options.items()]
        known = next(command for command in self.commands if command["name"] == name)
        data = {"id": str(next(self._ids)), "name": name, "type": 1, "options": given}
        assert {option["name"] for option in given} <= {o["name"] for o in known.get("options", ())}
        return await self._interact(2, data, by, channel, may, None, context)

    async def menu(self, name: str, on: Json, *, by: int = ANA) -> Interaction:
        """Let a person choose an entry of a message's menu."""
        data = {"id": str(next(self._ids)), "name": name, "type": 3, "target_id": on["id"]}
        data |= {"resolved": {"messages": {on["id"]: on}}}
        return await self._interact(2, data, by, int(on["channel_id"]), EVERYBODY_MAY, None)

    async def press(self, on: Posted, label: str, *, by: int = ANA) -> Interaction:
        """Let a person press a button."""
        data = {"custom_id": on.button(label)["custom_id"], "component_type": 2}
        return await self._interact(3, data, by, on.channel, EVERYBODY_MAY, on)

    async def _interact(
        self,
        type: int,
        data: Json,
        by: int,
        channel: int,
        may: int,
        on: Posted | None,
        context: int | None = None,
    ) -> Interaction:
        id, token = next(self._ids), f"token-{next(self._ids)}"
        made = Interaction(id, by, channel, on, made_at=self.monotonic())
        self.interactions[token] = made
        private = channel in (DM, GROUP)
        payload = TEMPLATES["interaction"] | {
            "id": str(id),
            "application_id": str(APPLICATION),
            "type": type,
            "data": data,
            "token": token,
            "channel": self._channel(channel) | {"permissions": str(may)},
            "channel_id": str(channel),
            "context": context if context is not None else int(private),
        }
        if private:
            payload["user"] = _user(by)
        else:
            member = self._member(by) | {"permissions": str(may)}
            guild = {"id": str(GUILD), "locale": "en-US", "features": []}
            payload |= {"guild_id": str(GUILD), "guild": guild, "member": member}
        if on is not None:
            shown = {"components": on.body.get("components") or [], "flags": EPHEMERAL * on.ephemeral}
            payload["message"] = self._message(on.id, on.channel, BOT, on.text) | shown
        await self.send("INTERACTION_CREATE", payload)
        return made

    async def answered(self, interaction: Interaction, *, apart: bool = False) -> Posted:
        """Wait for the answer to an interaction, and return it. `apart`: it is a message of its own."""
        async with asyncio.timeout(60):
            await (self.until(lambda: interaction.follow_ups) if apart else interaction.done.wait())
        return interaction.answer

    def posted(self, channel: int) -> list[Posted]:
        """Return the messages that everybody in the channel sees, in order."""
        return [
            m for m in self.messages.values() if m.channel == channel and not m.deleted and not m.ephemeral
        ]

    def shown(self, channel: int) -> list[str]:
        return [message.text for message in self.posted(channel)]

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until `holds` is true, which is checked after each request."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: bool(holds()))

    async def send(self, event: str, data: Json) -> None:
        """Send an event to the bot, if it is connected. Events of the server go to the server's shard."""
        await self._send(self.shard if "guild_id" in data else 0, event, data)

    @property
    def shard(self) -> int:
        """Return the shard of the server."""
        return (GUILD >> 22) % self.shards

    async def _send(self, shard: int, event: str, data: Json) -> None:
        frame = {"op": 0, "t": event, "s": next(self._sequence), "d": data}
        for socket in self._sockets.get(shard, []):
            if not socket.closed:
                await socket.send_json(frame)

    def end(self) -> None:
        """Forget the connections of bots that have disconnected."""
        self._sockets.clear()
        self.connected.clear()

    async def end_session(self, shard: int | None = None) -> None:
        """Invalidate the session of one shard, or of all. The bot then begins a new one and gets no earlier
        events."""
        lost = [self._sockets.pop(one) for one in list(self._sockets) if shard in (None, one)]
        self.connected.clear()
        for socket in chain(*lost):
            await socket.send_json({"op": 9, "d": False})

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 40_000}})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            await self._heard(socket, json.loads(message.data))
        return socket

    async def _heard(self, socket: web.WebSocketResponse, frame: Json) -> None:
        if frame["op"] == 1:
            await socket.send_json({"op": 11})
        elif frame["op"] == 2 and self.close_with is not None:
            await socket.close(code=self.close_with)
        elif frame["op"] == 2:
            shard, shards = frame["d"].get("shard", (0, 1))
            assert shards == self.shards
            self._sockets.setdefault(shard, []).append(socket)
            await self._welcome(socket, shard)
            if len(self._sockets) == self.shards:
                self.connected.set()

    async def _welcome(self, socket: web.WebSocketResponse, shard: int) -> None:
        own = not self.forget_guild and shard == self.shard
        ready = {
            "v": 10,
            "user": _user(BOT),
            "guilds": [{"id": str(GUILD), "unavailable": True}] if own else [],
            "session_id": str(shard),
            "shard": [shard, self.shards],
            "resume_gateway_url": f"ws://{self.address}/gw/",
            "application": {"id": str(APPLICATION), "flags": 0},
        }
        for event, data in (("READY", ready), *([("GUILD_CREATE", self.guild())] if own else [])):
            await socket.send_json({"op": 0, "t": event, "s": next(self._sequence), "d": data})

    def _routes(self) -> list[web.RouteDef]:
        message, webhook = "/channels/{channel}/messages", "/webhooks/{app}/{token}"
        handlers: dict[str, Callable[..., Any]] = {
            "GET /gateway/bot": lambda _: self._gateway_bot(),
            "GET /users/@me": lambda _: _user(BOT),
            "GET /oauth2/applications/@me": lambda _: self._application(),
            "PUT /applications/{app}/commands": self._sync,
            "POST /users/@me/channels": lambda _: self._channel(DM),
            "GET /channels/{channel}": self._get_channel,
            "GET /guilds/{guild}/members/{user}": self._get_member,
            "GET /channels/{channel}/thread-members/{user}": self._get_thread_member,
            "POST /channels/{channel}/typing": self._typing,
            f"POST {message}": self._post,
            f"GET {message}/{{id}}": self._get,
            f"PATCH {message}/{{id}}": self._patch,
            f"DELETE {message}/{{id}}": self._delete,
            "POST /interactions/{id}/{token}/callback": self._callback,
            f"POST {webhook}": self._follow_up,
            f"PATCH {webhook}/messages/@original": self._patch_original,
            f"GET {webhook}/messages/@original": self._get_original,
            f"DELETE {webhook}/messages/@original": self._delete_original,
        }
        routes = [
            web.get("/gw/", self._gateway),
            web.get("/files/{name}", self._file),
            web.get(f"/api/v10{message}", self._messages),
        ]
        for address, handler in handlers.items():
            method, path = address.split()
            routes.append(web.route(method, f"/api/v10{path}", partial(self._answer, handler)))
        return routes

    async def _answer(self, handler: Callable[..., Any], request: web.Request) -> web.StreamResponse:
        """Call the handler with the body and the parts of the path, and answer with its result; 204 for
        None."""
        path = request.path.removeprefix("/api/v10")
        for fault in self.faults:
            if (instead := fault(request.method, path)) is not None:
                return instead
        keyed = path.startswith(("/users", "/channels", "/applications", "/oauth2", "/guilds"))
        if keyed and request.headers.get("Authorization") != f"Bot {TOKEN}":
            return refusal(401, 0, "401: Unauthorized")
        try:
            body = await request.json() if request.can_read_body else {}
            value = handler(body, *(v for k, v in request.match_info.items() if k != "app"))
            value = await value if asyncio.iscoroutine(value) else value
            answer = web.Response(status=204) if value is None else _json(value)
        except _Refused as refused:
            status, code, message = refused.args
            self.refused.append((code, {"path": path, "message": message}))
            answer = refusal(status, code, message)
        async with self._news:
            self._news.notify_all()
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        self.fetched.append(name := request.match_info["name"])
        content = self.files.get(name)
        return web.Response(body=content, status=404 if content is None else 200)

    def _application(self) -> Json:
        about = {"id": str(APPLICATION), "owner": _user(ANA), "flags": self.flags}
        return TEMPLATES["application"] | about

    def _gateway_bot(self) -> Json:
        limits = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 16}
        return {"url": f"ws://{self.address}/gw/", "shards": self.shards, "session_start_limit": limits}

    async def _messages(self, request: web.Request) -> web.Response:
        """Return the first messages after the given one, or the last before it; newest first."""
        after, limit = int(request.query.get("after", 0)), int(request.query.get("limit", 50))
        before, channel = int(request.query.get("before", 2**63)), int(request.match_info["channel"])
        assert 1 <= limit <= 100
        found = [*self.history.get(channel, []), *map(self._as_json, self.posted(channel))]
        found = [message for message in found if after < int(message["id"]) < before]
        found.sort(key=lambda message: int(message["id"]))
        for number, message in enumerate(found):  # only the gateway sends the author's roles
            found[number] = {key: value for key, value in message.items() if key != "member"}
        return _json((found[:limit] if after else found[-limit:])[::-1])

    def _sync(self, given: Any) -> Any:
        menus = [command for command in given if command["type"] == 3]
        assert all(0 < len(command["description"]) <= 100 for command in given if command not in menus)
        self.commands = [
            {"description": ""}
            | command
            | {"id": str(next(self._ids)), "application_id": str(APPLICATION), "version": "1"}
            for command in given
        ]
        return self.commands

    def _get_channel(self, _: Json, channel: str) -> Json:
        if int(channel) not in {GENERAL, RANDOM, DM, *self.threads}:
            raise _Refused(404, 10003, "Unknown Channel")
        return self._channel(int(channel))

    def _get_member(self, _: Json, __: str, user: str) -> Json:
        if int(user) in self.gone:
            raise _Refused(404, 10007, "Unknown Member")
        return self._member(int(user))

    def _get_thread_member(self, _: Json, channel: str, user: str) -> Json:
        if int(user) not in self.private_threads[int(channel)]:
            raise _Refused(404, 10007, "Unknown Member")
        return {"id": channel, "user_id": user, "join_timestamp": "2026-11-21T09:30:00+00:00", "flags": 0}

    def _member(self, user: int) -> Json:
        return TEMPLATES["member"] | {
            "user": _user(user),
            "nick": self.nicknames.get(user),
            "roles": [str(id) for id in self.roles.get(user, ())],
        }

    def _typing(self, _: Json, channel: str) -> None:
        self.typed[int(channel)] += 1

    def _post(self, body: Json, channel: str) -> Json:
        if int(channel) in self.closed_dms:
            raise _Refused(403, 50007, "Cannot send messages to this user")
        if int(channel) in self.without_history and body.get("message_reference"):
            raise _Refused(403, 160002, "Cannot reply without permission to read message history")
        if self.too_odd and self.too_odd in body["content"]:
            raise _Refused(400, 50035, "Invalid Form Body")
        self._check(body)
        nonce = body["nonce"] if body.get("enforce_nonce") else None
        assert len(str(nonce)) <= 25
        posted = self._nonces.get(nonce)
        if posted is None:
            posted = self._add(int(channel), body)
            if nonce is not None:
                self._nonces[nonce] = posted
            if self.lost_answers:
                self.lost_answers -= 1
                raise _Refused(502, 0, "Bad Gateway")
        return self._as_json(posted)

    def _get(self, _: Json, channel: str, id: str) -> Json:
        for message in self.history.get(int(channel), ()):
            if message["id"] == id:
                return message
        return self._as_json(self._known(id))

    def _patch(self, body: Json, _: str, id: str) -> Json:
        return self._change(self._known(id), body)

    def _delete(self, _: Json, __: str, id: str) -> Awaitable[None]:
        """Send the bot an event also for messages that it deletes itself."""
        return self.delete(int(id), channel=self._known(id).channel)

    def _callback(self, body: Json, _: str, token: str) -> Json:
        made = self.interactions[token]
        if self.monotonic() > made.made_at + ACKNOWLEDGE_SECONDS:
            raise _Refused(404, 10062, "Unknown interaction")
        if made.answered:
            raise _Refused(400, 40060, "Interaction has already been acknowledged.")
        data = body.get("data") or {}
        made.answered = {5: "thinking", 6: "updating"}[body["type"]]
        made.ephemeral = bool(data.get("flags", 0) & EPHEMERAL)
        made.original = made.on if made.answered == "updating" else None
        return {"interaction": {"id": str(made.id), "type": 2, "response_message_loading": True}}

    def _follow_up(self, body: Json, token: str) -> Json:
        made = self._interaction(token)
        self._check(body)
        posted = self._add(made.channel, body)
        posted.ephemeral = made.ephemeral if made.answered == "thinking" and not made.follow_ups else False
        posted.ephemeral |= bool(body.get("flags", 0) & EPHEMERAL)
        made.follow_ups.append(posted)
        made.done.set()
        return self._as_json(posted)

    def _patch_original(self, body: Json, token: str) -> Json:
        made = self._interaction(token)
        if made.original is None:
            raise _Refused(404, 10008, "Unknown Message")
        changed = self._change(made.original, body)
        if "content" in body and made.original.ephemeral:  # only an ephemeral answer may replace a menu
            made.done.set()
        return changed

    def _get_original(self, _: Json, token: str) -> Json:
        original = self._interaction(token).original
        assert original is not None
        return self._as_json(original)

    def _delete_original(self, _: Json, token: str) -> None:
        """Delete the first answer. Later answers are no longer ephemeral because that one was."""
        self._interaction(token).answered = "deleted"

    def _interaction(self, token: str) -> Interaction:
        made = self.interactions.get(token)
        if made is None or not made.answered:
            raise _Refused(404, 10015, "Unknown Webhook")
        if self.monotonic() > made.made_at + TOKEN_SECONDS:
            raise _Refused(401, 50027, "Invalid Webhook Token")
        return made

    def _known(self, id: str) -> Posted:
        posted = self.messages.get(int(id))
        if posted is None or posted.deleted or posted.ephemeral:
            raise _Refused(404, 10008, "Unknown Message")
        return posted

    def _check(self, body: Json) -> None:
        if not (body.get("content") or "").strip():
            raise _Refused(400, 50006, "Cannot send an empty message")
        if len((body.get("content") or "").encode("utf-16-le")) // 2 > LIMIT:
            raise _Refused(400, 50035, "Invalid Form Body: Must be 2000 or fewer in length.")
        rows = body.get("components") or []
        ids = [button["custom_id"] for row in rows for button in row["components"]]
        wrong = len(rows) > 5 or len(set(ids)) < len(ids) or any(not 0 < len(id) <= 100 for id in ids)
        if wrong or any(len(row["components"]) > 5 for row in rows):
            raise _Refused(400, 50035, "Invalid Form Body: components")

    def _add(self, channel: int, body: Json) -> Posted:
        posted = Posted(next(self._ids), channel, body, [body["content"]])
        self.messages[posted.id] = posted
        return posted

    def _change(self, posted: Posted, body: Json) -> Json:
        self._check(body | {"content": body.get("content", posted.text)})
        if body.get("content") is not None:
            posted.texts.append(body["content"])
        posted.body = posted.body | {key: value for key, value in body.items() if key != "content"}
        return self._as_json(posted)

    def _as_json(self, posted: Posted) -> Json:
        message = self._message(posted.id, posted.channel, BOT, posted.text)
        return message | {"components": posted.body.get("components") or []}

    def _message(self, id: int, channel: int, by: int, text: str) -> Json:
        message = {"id": str(id), "channel_id": str(channel), "author": _user(by), "content": text}
        message |= TEMPLATES["message"]
        if channel not in (DM, GROUP):
            member = self._member(by)
            del member["user"]
            message |= {"guild_id": str(GUILD), "member": member}
        return message

    def _channel(self, id: int) -> Json:
        if id == DM:
            return {"id": str(id), "type": 1, "recipients": [_user(ANA)]}
        if id == GROUP:
            return {"id": str(id), "type": 3, "recipients": [_user(ANA), _user(BEN)], "name": "a group"}
        here: Json = {"id": str(id), "guild_id": str(GUILD)}
        if id in self.last_messages:
            here["last_message_id"] = str(self.last_messages[id])
        if id in self.threads:
            kind = {"type": 12} if id in self.private_threads else {}
            here |= {"parent_id": str(self.threads[id]), "owner_id": str(ANA)}
            return TEMPLATES["thread"] | here | kind
        here |= {"name": "general" if id == GENERAL else "random"} | (
            {"type": 15} if id in self.forums else {}
        )
        denied = {"id": str(GUILD), "type": 0, "allow": "0", "deny": str(self.denied.get(id, 0))}
        return TEMPLATES["text_channel"] | here | {"permission_overwrites": [denied]}

    def guild(self) -> Json:
        own = _role(ROLE, "Hachi") | {"managed": True, "tags": {"bot_id": str(BOT)}}
        return TEMPLATES["guild"] | {
            "id": str(GUILD),
            "owner_id": str(ANA),
            "roles": [
                _role(GUILD, "@everyone") | {"permissions": str(1 << 10 | 1 << 11 | 1 << 16)},
                own,
                *(_role(id, "a role") for id in {*chain(*self.roles.values())}),
            ],
            "members": [TEMPLATES["member"] | {"user": _user(BOT), "roles": [str(ROLE)]}],
            "channels": [self._channel(GENERAL), self._channel(RANDOM)],
            "threads": [self._channel(id) for id in self.threads],
        }


class _Refused(Exception):
    """Raised to refuse a request; its arguments are the status, Discord's code and a message."""


def refusal(status: int, code: int, message: str) -> web.Response:
    return _json({"code": code, "message": message}, status)


def _json(value: Any, status: int = 200) -> web.Response:
    """Return JSON with the content type that discord.py requires, without a charset."""
    headers = {"Content-Type": "application/json"}
    return web.Response(body=json.dumps(value).encode(), status=status, headers=headers)


def _user(id: int) -> Json:
    name = NAMES.get(id, f"user{id}")
    about = {"id": str(id), "username": name.lower(), "global_name": name, "bot": id in (BOT, ANOTHER_BOT)}
    return TEMPLATES["user"] | about


def _role(id: int, name: str) -> Json:
    return TEMPLATES["role"] | {"id": str(id), "name": name}
