"""Where on Discord the bot works, and for whom, as its operator has set."""

from dataclasses import dataclass
from typing import Any

from agent.settings import Settings


@dataclass(frozen=True, slots=True)
class Allowed:
    """Ids of Discord. What is empty limits nothing."""

    servers: frozenset[int] = frozenset()
    channels: frozenset[int] = frozenset()
    """A channel's threads are within it."""
    roles: frozenset[int] = frozenset()

    @classmethod
    def by(cls, settings: Settings) -> "Allowed":
        return cls(settings.discord_servers, settings.discord_channels, settings.discord_roles)

    def permits(self, channel: Any, person: Any) -> bool:
        return self.permits_channel(channel) and self.permits_person(person)

    def permits_channel(self, channel: Any) -> bool:
        """Return whether the bot may be used there. No list names direct messages."""
        guild = getattr(channel, "guild", None)
        here = {channel.id, getattr(channel, "parent_id", None)}
        return guild is None or (
            (not self.servers or guild.id in self.servers)
            and (not self.channels or not self.channels.isdisjoint(here))
        )

    def permits_person(self, person: Any) -> bool:
        """Return whether they have a role that is demanded. In direct messages nobody has one."""
        roles = {role.id for role in getattr(person, "roles", ())}
        return not self.roles or not self.roles.isdisjoint(roles)
