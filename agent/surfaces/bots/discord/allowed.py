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
        """Return whether this person may use the bot in this channel. Direct messages are permitted where no
        role is demanded, since nobody has a role there."""
        guild = getattr(channel, "guild", None)
        if guild is None:
            return not self.roles
        here = {channel.id, getattr(channel, "parent_id", None)}
        roles = {role.id for role in getattr(person, "roles", ())}
        return (
            (not self.servers or guild.id in self.servers)
            and (not self.channels or not self.channels.isdisjoint(here))
            and (not self.roles or not self.roles.isdisjoint(roles))
        )
