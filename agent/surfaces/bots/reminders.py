"""Delivers a reminder. Each is a new message, because edits notify nobody."""

from collections.abc import Awaitable, Callable

from memory.audience import Place
from memory.people.places import Places

CLOSED = "I have a reminder for you, but I may not write to you: your direct messages are closed to me."
"""Does not say what the reminder is about, because that was said in private."""


class ReminderSender:
    """Tries the place where the reminder was asked for, then the person's direct messages."""

    def __init__(
        self,
        places: Places,
        within: Place,
        post: Callable[[str, Place, str], Awaitable[bool]],
        post_privately: Callable[[str, str], Awaitable[bool]],
    ) -> None:
        """`post(user, place, text)` and `post_privately(user, text)` return False if the platform does not
        let the bot write there. `within` contains the platform's places."""
        self._places = places
        self._within = within
        self._post = post
        self._post_privately = post_privately

    async def send(self, user: str, place: Place | None, text: str) -> bool:
        """Send a reminder. Returns whether it reached the person. If their direct messages are closed, the
        place where they last spoke gets a message that they have a reminder. Raises what the platform
        raises."""
        if place is not None and await self._post(user, place, text):
            return True
        if await self._post_privately(user, text):
            return True
        last = await self._places.last_of(user, self._within)
        return last is not None and await self._post(user, last, CLOSED)
