"""Log who changed what: one line for each request that may change something, without its body.

The line of an erasure names nobody, since it would outlive the person's data.
"""

import json
import logging
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.surfaces.http.authentication import READING, key_of

log = logging.getLogger("hachi.audit")


@dataclass
class Audit:
    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in READING:
            await self.app(scope, receive, send)
            return

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                log.info("%s", json.dumps(_event(scope, message["status"]), ensure_ascii=False))
            await send(message)

        await self.app(scope, receive, noting)


def _event(scope: Scope, status: int) -> dict[str, Any]:
    key = key_of(scope)
    state = scope.get("state") or {}
    named = not state.get("unnamed")
    return {
        "event": "http_change",
        "key": key.id if key else None,
        "key_name": key.name if key and named else None,
        "acts_for": state.get("acts_for") if named else None,
        "method": scope["method"],
        "path": scope["path"] if named else scope["route"].path,
        "status": status,
    }
