"""Display names of people on Slack."""

import logging
from collections.abc import Iterable
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.attachments import display_name
from agent.surfaces.bots.slack.client import API_ERRORS

log = logging.getLogger("hachi.slack")

MAX_CACHED = 10_000
"""Names in the cache. The oldest are dropped first; a restart makes a changed name visible."""


class Names:
    """Asks Slack once for each person. A person whom Slack does not know is shown by their id."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._names: dict[str, str] = {}

    async def of(self, users: Iterable[str]) -> dict[str, str]:
        """Return names by user id."""
        return {user: await self._name(user) for user in dict.fromkeys(users)}

    async def _name(self, user: str) -> str:
        if user not in self._names:
            try:
                answer = await self._client.users_info(user=user)
            except API_ERRORS as error:
                log.warning("cannot get the name of %s: %s", user, error)
                return user
            self._names[user] = display_name(_chosen(answer.get("user") or {}), user)
            while len(self._names) > MAX_CACHED:
                del self._names[next(iter(self._names))]
        return self._names[user]


def _chosen(person: dict[str, Any]) -> str | None:
    profile = person.get("profile") or {}
    found = [*map(profile.get, ("display_name", "real_name")), *map(person.get, ("real_name", "name"))]
    return next((str(name) for name in found if name and str(name).strip()), None)
