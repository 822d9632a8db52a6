"""What a bot does while it runs, beside answering: it says which model answers, and delivers reminders."""

from collections.abc import Awaitable, Callable

from agent.settings import Settings
from memory.audience import Place
from memory.people.places import Places

CLOSED = "I have a reminder for you, but I may not write to you: your direct messages are closed to me."
"""Does not say what the reminder is about, because that was said in private."""

Post = Callable[[str, Place | None, str], Awaitable[bool]]
"""`Platform.write`."""


def who_answers(settings: Settings) -> str:
    if settings.offline:
        return "no model is configured: the rule-based stand-in answers"
    return f"the model {settings.chosen_model} answers"


def reminder_sender(places: Places, within: Place, post: Post) -> Post:
    """Return `send(user, place, text)`, which returns whether the reminder reached the person. It tries the
    place, then their direct messages. If those are closed, the place where they last spoke gets a message
    that they have a reminder. `within` contains the platform's places. Each is a new message, because edits
    notify nobody."""

    async def send(user: str, place: Place | None, text: str) -> bool:
        if (place and await post(user, place, text)) or await post(user, None, text):
            return True
        last = await places.last_of(user, within)
        return last is not None and await post(user, last, CLOSED)

    return send
