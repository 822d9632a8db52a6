"""What people on Slack are called."""

import logging
from collections.abc import Iterable
from typing import Any

from aiohttp import ClientError
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.people import display_name

log = logging.getLogger("hachi.slack")

MOST_KNOWN = 10_000
"""Names that are kept at hand; the oldest go first. A changed one is seen after a restart at the latest."""
FAULTS = (SlackClientError, ClientError, OSError)
"""What a call of Slack's API may raise; a time-out is an OSError."""


class People:
    """Asked once a person, and whoever Slack does not tell of goes by their id."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._names: dict[str, str] = {}

    async def name(self, user: str) -> str:
        if user not in self._names:
            try:
                answer = await self._client.users_info(user=user)
            except FAULTS as error:
                log.warning("the name of %s is not to be had: %s", user, error)
                return user  # asked again next time
            self._names[user] = display_name(_called(answer.get("user") or {}), user)
            while len(self._names) > MOST_KNOWN:
                del self._names[next(iter(self._names))]
        return self._names[user]

    async def names(self, users: Iterable[str]) -> dict[str, str]:
        """Id → name."""
        return {user: await self.name(user) for user in dict.fromkeys(users)}


def _called(person: dict[str, Any]) -> str | None:
    profile = person.get("profile") or {}
    found = (
        profile.get("display_name"),
        profile.get("real_name"),
        person.get("real_name"),
        person.get("name"),
    )
    return next((str(name) for name in found if name and str(name).strip()), None)
