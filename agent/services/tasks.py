"""Tasks and reminders of people: `pet.tasks`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.errors import BadInput
from agent.services.forgetting import ForgetService
from agent.types.arguments import DueTime, ShortText, Status, Text, User, Where, place_of
from agent.types.checks import checks_arguments
from agent.types.meanings import due_of, require_consent
from memory.people.tasks import Change
from memory.records import Forgotten, Task

if TYPE_CHECKING:
    from agent.wiring.components import Components


@checks_arguments
@dataclass(frozen=True)
class TaskService:
    parts: "Components"
    forgetting: ForgetService

    async def update(
        self,
        description: Text = "",
        *,
        user: User,
        place: Where = None,
        id: ShortText | None = None,
        status: Status = None,
        due: DueTime = None,
        alike: bool = True,
    ) -> Change:
        """Create, change or finish a task. Omitted fields stay as they are; a new task is open.

        `id` is a whole id or at least its first 4 characters. Without it, the open task with the same
        description is changed. With `alike`, an update that begins or finishes a task also matches an open
        task in other words, if only one is similar. If none matches, a task is created, unless the update
        finishes one. `due` is an aware time or text: ISO 8601 or plain English, by the person's clock if it
        names no zone; "never" removes it. Raises BadInput, NotFound, and Unclear if several tasks can be
        meant; then nothing is changed.
        """
        where = place_of(place)
        if id is None and not description.strip():
            raise BadInput("description: say what is to be done, or give the id of a task")
        await require_consent(self.parts.places, user, where)
        now = self.parts.clock()
        zone = await self.parts.profiles.zone(user, where, now) if isinstance(due, str) else None
        return await self.parts.tasks.update(
            user, description, status, now=now, id=id, due=due_of(due, zone, now), place=where, alike=alike
        )

    async def forget(self, id: ShortText, *, user: User, place: Where = None) -> Forgotten:
        """Forget a task, open or finished, by its id or the beginning of it, like `pet.memories.forget` with
        `kind="task"`. Raises NotFound, and Unclear if several ids match."""
        where = place_of(place)
        task = await self.parts.tasks.named(user, id, place=where)
        return await self.forgetting.forget("task", task.id, user, where)

    async def list(self, *, user: User, place: Where = None, done: bool = False) -> list[Task]:
        """Return the open tasks, newest first; with `done` the finished ones too."""
        return await self.parts.tasks.list(user, place_of(place), done=done)
