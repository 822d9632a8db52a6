"""What each tool is called with. The descriptions are read by the agent that calls it."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from agent.types import writable
from memory.facts.writer import MAX_CONTENT
from memory.people.task_wording import bare_id
from memory.records import DEFAULT_IMPORTANCE, MemoryType, TaskStatus
from tools.memories import Subjects, none_if_blank

Writable = AfterValidator(writable)
Query = Annotated[
    str, Field(min_length=1, max_length=2_000, description="what to look for, in words"), Writable
]
Limit = Annotated[int, Field(ge=1, le=50, description="how many at most")]
Id = Annotated[str, Field(pattern="^[0-9a-f-]{8,36}$")]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @classmethod
    def schema_shown(cls) -> dict[str, Any]:
        """JSON schema of the arguments, without the titles, which repeat the names."""
        schema = cls.model_json_schema()
        for part in (schema, *schema["properties"].values()):
            part.pop("title", None)
        return schema


class Searching(Arguments):
    query: Query
    subjects: Annotated[Subjects, Field(max_length=50, description="only facts with one of these tags")] = ()
    limit: Limit = 10


class Recent(Arguments):
    limit: Limit = 10


class Fact(Arguments):
    content: Annotated[
        str,
        Field(min_length=1, max_length=MAX_CONTENT, description="one fact: a sentence that names the person"),
        Writable,
    ]
    subjects: Annotated[
        Subjects, Field(max_length=50, description="lower-case tags, people's names too")
    ] = ()
    ttl: Annotated[
        str | None, Field(max_length=100, description='how long it holds: "1h", "7d", "2w" …; null for good')
    ] = None
    type: MemoryType = "fact"
    importance: Annotated[float, Field(ge=0, le=1)] = DEFAULT_IMPORTANCE
    replaces: Annotated[
        Id | None,
        BeforeValidator(none_if_blank),
        Field(description="the id of the memory that this corrects"),
    ] = None


class LookingUp(Arguments):
    query: Query
    limit: Annotated[int, Field(ge=1, le=20, description="how many passages at most")] = 5


class TaskChange(Arguments):
    id: Annotated[
        Annotated[str, Field(max_length=36)] | None,
        BeforeValidator(bare_id),
        Field(description="of the task to change, or how it begins; null where it is not known"),
    ] = None
    description: Annotated[str, Field(max_length=1_000, description="what is to be done"), Writable] = ""
    status: Annotated[TaskStatus | None, Field(description="stays as it is unless given")] = None
    due: Annotated[
        Annotated[str, Field(max_length=60)] | None,
        BeforeValidator(none_if_blank),
        Field(
            description="ISO 8601; without an offset by the person's clock, a date alone is 09:00; "
            'null leaves it as it is, "never" takes it away',
        ),
    ] = None


class Listing(Arguments):
    finished: Annotated[bool, Field(description="the finished ones too")] = False


class Forgetting(Arguments):
    id: Annotated[Id, Field(description="of the memory, or its first eight characters")]
