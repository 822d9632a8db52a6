"""Slack on 127.0.0.1 for a real slack-bolt: the Web API, Socket Mode, and signed requests by HTTP.

It stores messages as the channel would show them, and refuses what Slack refuses: wrong tokens, texts and
blocks that are too long, and unknown messages.

    async with SlackServer.running() as slack:
        ...                                          # an app whose client's base_url is slack.api
        await slack.deliver(slack.says("U1", "hello", channel="D1"))
        assert [message.text for message in slack.in_channel("D1")] == ["Hello, Ana!"]
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count
from time import time
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import WSMsgType, web
from slack_sdk.signature import SignatureVerifier

TEAM, BOT, BOT_ID, APP = "T1", "UHACHI", "BHACHI", "A1"
BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-test-1", "xapp-test-1", "0123456789abcdef"
LONGEST_TEXT, LONGEST_MARKDOWN, LONGEST_SECTION, MOST_BLOCKS = 40_000, 12_000, 3_000, 50


FROM_SLACK = {"token": "old", "api_app_id": APP}
"""Fields of everything that Slack sends."""


class Refused(Exception):
    """Raised to answer with `"ok": false`."""


@dataclass
class Posted:
    """A message of the bot."""

    channel: str
    ts: str
    text: str
    thread: str | None = None
    only_for: str | None = None
    """The only person who sees it, if it is ephemeral."""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    """All versions of its text."""

    def become(self, text: str, blocks: list[dict[str, Any]] | None = None) -> None:
        self.text = text
        self.blocks = blocks if blocks is not None else self.blocks
        self.versions.append(text)


def _reaction(arguments: dict[str, Any]) -> tuple[str, str, str]:
    return arguments["channel"], arguments["timestamp"], arguments["name"]


def buttons_of(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the buttons in these blocks, in order."""
    inside = [
        [block.get("accessory")] if "accessory" in block else block.get("elements", []) for block in blocks
    ]
    return [element for elements in inside for element in elements if element.get("type") == "button"]


class SlackServer:
    """Slack's Web API and Socket Mode. Its attributes record calls, hold what is shown, and set what is
    refused."""

    def __init__(self) -> None:
        self.url = ""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """(method, arguments) of the authorised calls."""
        self.messages: list[Posted] = []
        """Messages of the bot that are not deleted."""
        self.said: list[dict[str, Any]] = []
        """Messages of people."""
        self.statuses: list[tuple[str, str, str]] = []
        """(channel, thread, status)."""
        self.epoch = 1_700_000_000
        """The second of all timestamps."""
        self.responses: list[dict[str, Any]] = []
        """Bodies sent to a response_url."""
        self.names: dict[str, str] = {}
        """Person → display name. Others are unknown."""
        self.zones: dict[str, str] = {}
        """Person → time zone."""
        self.files: dict[str, tuple[str, bytes]] = {}
        """Path → content type and content."""
        self.fetched: list[str] = []
        """The paths of files that were requested."""
        self.moved: dict[str, str] = {}
        """Path of a file → the address to which Slack redirects."""
        self.reactions: list[tuple[str, str, str]] = []
        """(channel, message, emoji) of the bot's current reactions."""
        self.told: dict[str, list[dict[str, Any]]] = {}
        """File → the successive results of `files.info`; the last one is repeated."""
        self.acknowledged: list[str] = []
        """Acknowledged envelopes of Socket Mode."""
        self.connections = 0
        """The number of connections of Socket Mode so far."""
        self.limited: set[str] = set()
        """Methods whose next call is rate-limited."""
        self.closed: set[str] = set()
        """Channels where the bot may not write."""
        self.refused: dict[str, str] = {}
        """Method → error."""
        self.scopes = ""
        """Scopes that are granted to the bot."""
        self.admins: set[str] = set()
        self.people: dict[str, dict[str, Any]] = {}
        """Person → further fields of their profile."""
        self.members: dict[str, set[str]] = {}
        """Private channel → its members. All other channels are public and have no members."""
        self.creators: dict[str, str] = {}
        """Channel → who created it."""
        self.too_odd = ""
        """Blocks are refused if their text contains this word."""
        self.away = False
        """Whether connections fail."""
        self.changed = asyncio.Event()
        self._numbers = count(1)
        self._sockets: list[web.WebSocketResponse] = []

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator["SlackServer"]:
        """Run a server on a free port of 127.0.0.1 during the block."""
        here = cls()
        app = web.Application()
        app.router.add_post("/api/{method}", here._api)
        app.router.add_get("/api/{method}", here._api)
        app.router.add_get("/socket", here._socket)
        app.router.add_get("/files/{name}", here._file)
        app.router.add_post("/respond/{who}", here._respond)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        here.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield here
        finally:
            for socket in list(here._sockets):
                await socket.close()
            await runner.cleanup()

    @property
    def api(self) -> str:
        return f"{self.url}/api/"

    def in_channel(self, channel: str, *, thread: str | None = None) -> list[Posted]:
        """Return the messages that everybody sees in the channel or thread."""
        return [
            message
            for message in self.messages
            if message.channel == channel and not message.only_for and thread in (None, message.thread)
        ]

    def only_for(self, user: str) -> list[Posted]:
        """Return the ephemeral messages to this person."""
        return [message for message in self.messages if message.only_for == user]

    def called(self, method: str) -> list[dict[str, Any]]:
        """Return the arguments of each authorised call of this method."""
        return [arguments for name, arguments in self.calls if name == method]

    async def until(self, true: Callable[[], Any], seconds: float = 30.0) -> None:
        """Wait until `true` returns true; fail after `seconds`."""
        async with asyncio.timeout(seconds):
            while not true():
                self.changed.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), 0.05)

    def _next_ts(self) -> str:
        return f"{self.epoch}.{next(self._numbers):06d}"

    def says(
        self, user: str, text: str, /, *, channel: str, ts: str | None = None, **other: Any
    ) -> dict[str, Any]:
        """Return a message event. Channels that begin with D are direct messages."""
        kind = "im" if channel.startswith("D") else "channel"
        event = {"type": "message", "user": user, "text": text, "ts": ts or self._next_ts()}
        self.said.append(event | {"channel": channel} | other)
        return self.event(event | {"channel": channel, "channel_type": kind} | other)

    def mentions(self, user: str, text: str, /, *, channel: str, **other: Any) -> list[dict[str, Any]]:
        """Return the two events of a message that mentions the bot."""
        message = self.says(user, f"<@{BOT}> {text}", channel=channel, **other)
        named = {key: value for key, value in message["event"].items() if key != "channel_type"}
        return [self.event(named | {"type": "app_mention"}), message]

    def edits(self, ts: str, text: str, *, channel: str) -> list[dict[str, Any]]:
        """Let a person edit a message. Returns the events; a mention of the bot adds a second one."""
        [line] = [line for line in self.said if (line["channel"], line["ts"]) == (channel, ts)]
        before = {name: value for name, value in line.items() if name != "channel"}
        line |= {"text": text, "edited": {"user": line["user"], "ts": self._next_ts()}}
        new = {name: value for name, value in line.items() if name != "channel"}
        event = {"type": "message", "subtype": "message_changed", "channel": channel, "ts": self._next_ts()}
        events = [self.event(event | {"hidden": True, "message": new, "previous_message": before})]
        if f"<@{BOT}>" in text:
            events.append(self.event({**new, "type": "app_mention", "channel": channel}))
        return events

    def deletes(self, ts: str, *, channel: str) -> dict[str, Any]:
        """Let a person delete a message. If it has a thread, a tombstone stays."""
        self.said = [line for line in self.said if (line["channel"], line["ts"]) != (channel, ts)]
        event = {"type": "message", "channel": channel, "ts": self._next_ts(), "hidden": True}
        if not self.in_channel(channel, thread=ts):
            return self.event(event | {"subtype": "message_deleted", "deleted_ts": ts})
        tombstone = {
            "type": "message",
            "subtype": "tombstone",
            "user": "USLACKBOT",
            "ts": ts,
            "thread_ts": ts,
        }
        return self.event(event | {"subtype": "message_changed", "message": tombstone})

    def event(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the payload in which Slack sends this event."""
        return FROM_SLACK | {
            "team_id": TEAM,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev{next(self._numbers)}",
            "event_time": 1700000000,
            "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}],
        }

    def command(self, command: str, text: str = "", *, user: str, channel: str = "D1") -> dict[str, Any]:
        """Return the payload of a slash command."""
        return FROM_SLACK | {
            "team_id": TEAM,
            "team_domain": "acme",
            "channel_id": channel,
            "channel_name": "directmessage" if channel[0] == "D" else "general",
            "user_id": user,
            "user_name": user.lower(),
            "command": command,
            "text": text,
            "response_url": f"{self.url}/respond/{user}",
            "trigger_id": f"trigger.{next(self._numbers)}",
        }

    def pressed(
        self,
        button: dict[str, Any],
        *,
        user: str,
        channel: str = "D1",
        thread: str | None = None,
    ) -> dict[str, Any]:
        """Return the payload of a button pressed in a message."""
        trigger = f"trigger.{next(self._numbers)}"
        container = {"type": "message", "message_ts": "1.1", "channel_id": channel}
        where = {
            "container": container | ({"thread_ts": thread} if thread else {}),
            "channel": {"id": channel, "name": "general"},
            "response_url": f"{self.url}/respond/{user}",
        }
        return self._interaction("block_actions", user, trigger) | {
            "actions": [{**button, "block_id": "b", "action_ts": "1.1"}],
            **where,
        }

    def menu(self, callback: str, message: dict[str, Any], *, user: str, channel: str) -> dict[str, Any]:
        """Return the payload of a menu entry chosen for a message."""
        return self._interaction("message_action", user, "trigger") | {
            "callback_id": callback,
            "channel": {"id": channel, "name": "general"},
            "message": message,
            "message_ts": message["ts"],
            "response_url": f"{self.url}/respond/{user}",
        }

    def _interaction(self, type: str, user: str, trigger: str) -> dict[str, Any]:
        return FROM_SLACK | {
            "type": type,
            "user": {"id": user, "username": user.lower(), "team_id": TEAM},
            "team": {"id": TEAM, "domain": "acme"},
            "trigger_id": trigger,
        }

    def attach(self, name: str, content: bytes, type: str = "text/plain", **other: Any) -> dict[str, Any]:
        """Return a file of a message."""
        self.files[name] = (type, content)
        return {
            "id": f"F{next(self._numbers)}",
            "name": name,
            "mimetype": type,
            "size": len(content),
            "url_private_download": f"{self.url}/files/{name}",
            **other,
        }

    async def deliver(self, *payloads: dict[str, Any], **envelope: Any) -> None:
        """Send the payloads by Socket Mode, again if the connection ended first. Returns when each is
        acknowledged."""
        for payload in payloads:
            id = None
            while id not in self.acknowledged:
                id = await self.send(payload, **envelope)
                on = self._sockets[-1:]
                await self.until(lambda id=id, on=on: id in self.acknowledged or on != self._sockets[-1:])  # type: ignore[misc]

    async def send(self, payload: dict[str, Any], **envelope: Any) -> str:
        """Send a payload by Socket Mode. Returns the envelope's id at once."""
        await self.until(lambda: self._sockets)
        kinds = {"event_callback": "events_api", None: "slash_commands"}
        id = f"envelope-{next(self._numbers)}"
        kind = kinds.get(payload.get("type"), "interactive")
        whole = {"envelope_id": id, "type": kind, "payload": payload, "accepts_response_payload": False}
        with suppress(ConnectionError):  # closed by the client, which is detected soon
            await self._sockets[-1].send_json({**whole, **envelope})
        return id

    async def post(
        self, url: str, payload: dict[str, Any], *, secret: str = SECRET, age: int = 0, **headers: str
    ) -> int:
        """Send a signed payload by HTTP. Returns the status of the answer."""
        body, kind = urlencode({"payload": json.dumps(payload)}), "application/x-www-form-urlencoded"
        if payload.get("type") == "event_callback" or "challenge" in payload:
            body, kind = json.dumps(payload), "application/json"
        elif "command" in payload:
            body = urlencode(payload)
        sent_at = str(int(time()) - age)
        signature = SignatureVerifier(secret).generate_signature(timestamp=sent_at, body=body)
        signed = {
            "X-Slack-Request-Timestamp": sent_at,
            "X-Slack-Signature": str(signature),
            "Content-Type": kind,
        }
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=BytesIO(body.encode()), headers={**signed, **headers}) as answer,
        ):
            await answer.read()
            return answer.status

    async def hang_up(self) -> None:
        """Close all connections of Socket Mode."""
        for socket in list(self._sockets):
            await socket.close()

    async def _api(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        arguments: dict[str, Any] = dict(request.query)
        if request.content_type == "application/json":
            arguments |= await request.json()
        elif request.can_read_body:
            arguments |= dict(await request.post())
        wanted = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("Authorization") != f"Bearer {wanted}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        if method in self.limited:
            self.limited.remove(method)
            limited = {"ok": False, "error": "ratelimited"}
            return web.json_response(limited, status=429, headers={"Retry-After": "0"})
        self.calls.append((method, arguments))
        answer: dict[str, Any]
        try:
            if method in self.refused:
                raise Refused(self.refused[method])
            answer = getattr(self, method.replace(".", "_").lower())(arguments) or {}
        except Refused as error:
            answer = {"ok": False, "error": str(error)}
        self.changed.set()
        return web.json_response({"ok": True} | answer, headers={"X-OAuth-Scopes": self.scopes})

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        if self.away:
            raise web.HTTPServiceUnavailable
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connections += 1
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": APP}})
        self._sockets.append(socket)
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                acknowledged = json.loads(message.data)
                self.acknowledged.append(acknowledged["envelope_id"])
                self.changed.set()
        self._sockets.remove(socket)
        self.changed.set()
        return socket

    async def _file(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text="<html>sign in</html>", content_type="text/html")
        self.fetched.append(name := request.match_info["name"])
        if there := self.moved.get(name):
            return web.Response(status=302, headers={"location": there})
        kind, content = self.files[name]
        return web.Response(body=content, content_type=kind)

    async def _respond(self, request: web.Request) -> web.Response:
        answer = await request.json()
        self.responses.append(answer | {"user": request.match_info["who"]})
        try:
            _fits(answer)
        except Refused as error:
            return web.Response(status=400, text=str(error))
        self.changed.set()
        return web.Response(text="ok")

    def _find(self, arguments: dict[str, Any]) -> Posted:
        wanted = (arguments["channel"], arguments["ts"])
        for message in self.messages:
            if (message.channel, message.ts) == wanted and not message.only_for:
                return message
        raise Refused("message_not_found")

    def _post(self, arguments: dict[str, Any]) -> Posted:
        _fits(arguments)
        if arguments["channel"] in self.closed:
            raise Refused("not_in_channel")
        text, blocks = _text(arguments), arguments.get("blocks") or []
        if self.too_odd and self.too_odd in text:
            raise Refused("invalid_blocks")
        if not text and not blocks and "thread_ts" not in arguments:
            raise Refused("no_text")
        posted = Posted(
            arguments["channel"], self._next_ts(), text, arguments.get("thread_ts"), blocks=blocks
        )
        posted.versions.append(text)
        self.messages.append(posted)
        return posted

    def chat_postmessage(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if not _text(arguments) and not arguments.get("blocks"):
            raise Refused("no_text")
        channel = arguments["channel"]
        if channel.startswith("U"):  # a message to a person is private
            arguments = {**arguments, "channel": f"D{channel[1:]}"}
        posted = self._post(arguments)
        return {"channel": posted.channel, "ts": posted.ts, "message": {"text": posted.text}}

    def chat_postephemeral(self, arguments: dict[str, Any]) -> dict[str, Any]:
        posted = self._post(arguments)
        posted.only_for = arguments["user"]
        return {"message_ts": posted.ts}

    def chat_update(self, arguments: dict[str, Any]) -> dict[str, Any]:
        _fits(arguments)
        message = self._find(arguments)
        message.become(_text(arguments), arguments.get("blocks"))
        return {"channel": message.channel, "ts": message.ts}

    def chat_delete(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.messages.remove(self._find(arguments))
        return {"channel": arguments["channel"], "ts": arguments["ts"]}

    def stop(self, user: str, *, channel: str, thread: str) -> dict[str, Any]:
        """Return the event of the button that stops the bot's work in the thread."""
        event = {"type": "agent_session_stopped", "channel": channel, "thread_ts": thread, "user": user}
        return self.event(event)

    def agents_sessions_setstatus(self, arguments: dict[str, Any]) -> None:
        if arguments["status"] not in ("active", "processing", "suspended", "closed"):
            raise Refused("invalid_arguments")
        self.statuses.append((arguments["channel_id"], arguments["thread_ts"], arguments["status"]))

    def reactions_add(self, arguments: dict[str, Any]) -> None:
        if (reaction := _reaction(arguments)) in self.reactions:
            raise Refused("already_reacted")
        self.reactions.append(reaction)

    def reactions_remove(self, arguments: dict[str, Any]) -> None:
        if (reaction := _reaction(arguments)) not in self.reactions:
            raise Refused("no_reaction")
        self.reactions.remove(reaction)

    def auth_test(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"bot_id": BOT_ID, "team": "Acme", "team_id": TEAM, "user_id": BOT, "user": "hachi"}

    def apps_connections_open(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"url": f"{self.url.replace('http', 'ws')}/socket"}

    def users_info(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if (id := arguments["user"]) not in self.names:
            raise Refused("user_not_found")
        profile = {"display_name": self.names[id], "real_name": f"{self.names[id]} of Acme"}
        person = {"id": id, "team_id": TEAM, "name": id.lower(), "profile": profile}
        person |= {"tz": self.zones[id]} if id in self.zones else {}
        return {"user": person | {"is_admin": id in self.admins} | self.people.get(id, {})}

    def conversations_info(self, arguments: dict[str, Any]) -> dict[str, Any]:
        id = arguments["channel"]
        if id.startswith("CGONE"):
            raise Refused("channel_not_found")
        kind = {"is_channel": True, "is_private": id in self.members}
        return {"channel": {"id": id, "name": "general", "creator": self.creators.get(id, "UBOSS")} | kind}

    def files_info(self, arguments: dict[str, Any]) -> dict[str, Any]:
        told = self.told.get(arguments["file"])
        if not told:
            raise Refused("file_not_found")
        return {"file": told.pop(0) if len(told) > 1 else told[0]}

    def usergroups_list(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"usergroups": [{"id": "S1", "handle": "cooks"}]}

    def conversations_replies(self, arguments: dict[str, Any]) -> dict[str, Any]:
        channel, thread, limit = arguments["channel"], arguments["ts"], int(arguments["limit"])
        bots = [
            {"user": BOT, "bot_id": BOT_ID, "text": m.text, "ts": m.ts} | {"thread_ts": m.thread}
            for m in self.in_channel(channel)
        ]
        lines = [line for line in self.said if line["channel"] == channel] + bots
        lines = [line for line in lines if thread in (line["ts"], line.get("thread_ts"))]
        if any(line["ts"] != thread for line in lines):  # Slack marks the first message of a thread, too
            lines = [line | {"thread_ts": line.get("thread_ts") or thread} for line in lines]
        latest, whole = arguments.get("latest", "9"), "oldest" in arguments
        lines = [line for line in lines if line["ts"] < latest or (whole and line["ts"] == latest)]
        lines.sort(key=lambda line: line["ts"])
        if not lines:
            raise Refused("thread_not_found")
        begin = int(arguments.get("cursor") or 0)
        after = str(begin + limit) if len(lines) > begin + limit else ""
        return {"messages": lines[begin : begin + limit], "response_metadata": {"next_cursor": after}}

    def users_conversations(self, arguments: dict[str, Any]) -> dict[str, Any]:
        assert "im" not in arguments["types"].split(","), "the app has no scope for it"
        if user := arguments.get("user"):
            own = [id for id, members in self.members.items() if user in members]
            return {"channels": [{"id": id, "name": "secret"} for id in own]}
        channels = {line["channel"] for line in self.said if not line["channel"].startswith("D")}
        return {"channels": [{"id": id} for id in sorted(channels)]}

    def conversations_history(self, arguments: dict[str, Any]) -> dict[str, Any]:
        lines = [line for line in self.said if line["channel"] == arguments["channel"]]
        heads = [line for line in lines if line.get("thread_ts") in (None, line["ts"])]
        for number, head in enumerate(heads):
            if below := [line["ts"] for line in lines if line.get("thread_ts") == head["ts"] != line["ts"]]:
                heads[number] = head | {"latest_reply": max(below)}
        return {"messages": heads[::-1][: int(arguments["limit"])]}

    def conversations_open(self, arguments: dict[str, Any]) -> dict[str, Any]:
        channel = f"D{arguments['users'][1:]}"
        if channel in self.closed:
            raise Refused("cannot_dm_bot")
        return {"channel": {"id": channel}}


def _text(arguments: dict[str, Any]) -> str:
    pieces = [chunk.get("text", "") for chunk in arguments.get("chunks") or ()]
    return str(arguments.get("markdown_text") or arguments.get("text") or "".join(pieces))


def _fits(arguments: dict[str, Any], most: int = MOST_BLOCKS) -> None:
    """Raise Refused if a limit is exceeded."""
    if len(arguments.get("text") or "") > LONGEST_TEXT:
        raise Refused("msg_too_long")
    if "markdown_text" in arguments:
        if len(arguments["markdown_text"]) > LONGEST_MARKDOWN:
            raise Refused("msg_too_long")
        if "text" in arguments or "blocks" in arguments:
            raise Refused("markdown_text_conflict")
    blocks = arguments.get("blocks") or []
    if len(blocks) > most:
        raise Refused("invalid_blocks")
    markdown = [block["text"] for block in blocks if block["type"] == "markdown"]
    if sum(map(len, markdown)) > LONGEST_MARKDOWN:
        raise Refused("msg_blocks_too_long")
    for block in blocks:
        if block["type"] == "markdown":
            continue
        text, most_text = block.get("text") or {}, 150 if block["type"] == "header" else LONGEST_SECTION
        if (text and not 1 <= len(text["text"]) <= most_text) or len(block.get("elements", ())) > 25:
            raise Refused("invalid_blocks")
    for button in buttons_of(blocks):
        long = len(button.get("value", "")) > 2_000 or len(button["action_id"]) > 255
        if long or not 1 <= len(button["text"]["text"]) <= 75:
            raise Refused("invalid_blocks")
