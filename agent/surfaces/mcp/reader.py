"""For whom a tool is called, and where: what decides what it may read."""

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from agent.companion import Companion
from agent.errors import BadInput
from agent.services.arguments import audience_of, user_named
from memory.audience import PRIVATE, Audience, Place


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, as far as it is proved."""

    user: str | None
    """None is nobody: nothing is read for them, and nothing is kept."""
    place: Place = PRIVATE
    in_full: bool = False
    """Whether it is who runs Hachi, who is told what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A companion, as one person may use it in one place."""

    pet: Companion
    user: str
    place: Place

    @classmethod
    def of(cls, pet: Companion, asker: Asker) -> "Reader":
        """Raises BadInput where it is nobody, or no name."""
        if asker.user is None:
            raise BadInput(
                "nobody is named, so nothing is read and nothing is kept; a service says for whom it asks in "
                "the header x-openwebui-user-id"
            )
        return cls(pet, user_named(asker.user), asker.place)

    @property
    def where(self) -> dict[str, Any]:
        """The arguments of a companion's methods that say who and where."""
        return {"user": self.user, "place": self.place}

    @property
    def audience(self) -> Audience:
        return audience_of(self.user, self.place)

    @property
    def place_key(self) -> str:
        """As tasks have it: empty in private."""
        return "" if self.place.private else self.place.key

    async def zone(self) -> tzinfo:
        """The person's time zone; UTC where they told none."""
        return (await self.pet.context(**self.where)).zone
