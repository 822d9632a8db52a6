"""What a bot does while it runs, beside answering: it says which model answers, and delivers reminders."""

from collections.abc import Awaitable, Callable

from agent.background.reminders import Send
from agent.settings import Settings
from agent.surfaces.bots.answers import Answer, reminder_answer
from memory.audience import PRIVATE, Place
from memory.people.due_tasks import Reminder
from memory.people.places import Places

CLOSED = Answer(
    "I have a reminder for you, but I may not write to you: your direct messages are closed to me."
)
"""Does not say what the reminder is about, because that was said in private."""


def who_answers(settings: Settings) -> str:
    if settings.offline:
        return "no model is configured: the rule-based stand-in answers"
    return f"the model {settings.chosen_model} answers"


def reminder_sender(places: Places, within: Place, post: Callable[..., Awaitable[bool]]) -> Send:
    """Return what sends reminders by `post`, a `Platform.write`. It tries where the task was asked for, then
    their direct messages. If those are closed, the place where they last spoke gets a message that they have
    a reminder. `within` contains the platform's places. Each is a new message, because edits notify
    nobody."""

    async def send(reminder: Reminder, text: str) -> bool:
        user, place, answer = reminder.task.user_id, reminder.place, reminder_answer(text, reminder.task.id)
        if await post(user, place, answer, reminder.asked_in) or await post(user, PRIVATE, answer):
            return True
        last = await places.last_of(user, within)
        return last is not None and await post(user, last, CLOSED)

    return send
