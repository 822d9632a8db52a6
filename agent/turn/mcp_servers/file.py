"""The file that the setting `mcp` names: MCP servers, and who is offered their tools where."""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from agent.errors import SettingsError
from agent.types.home_files import require_ours
from memory.audience import Place

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,32}$")]
ANYWHERE = "*"


class McpServer(BaseModel):
    """How a server is reached, and who is offered its tools. Unknown fields are refused: a misspelt `allow`
    would allow everything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    url: Annotated[str, StringConstraints(pattern=r"^(https?://|$)")] = ""
    headers: dict[str, str] = Field(default_factory=dict)
    allow: frozenset[str] | None = None
    """The names of the tools that may be offered; unset: all."""
    places: tuple[str, ...] | None = None
    """Where everybody is offered its tools: `dm` is in private, `*` anywhere, any other value a place and
    those inside it. Unset: in private, for admins only."""

    @model_validator(mode="after")
    def _reached_one_way(self) -> "McpServer":
        if bool(self.command) == bool(self.url):
            raise ValueError("it needs a command or a url, and not both")
        return self

    @property
    def transport(self) -> str:
        return "HTTP" if self.url else "stdio"

    def offered_to(self, user: str | None, place: Place, admins: frozenset[str]) -> bool:
        if self.places is None:
            return place.private and user in admins
        around = place.containing() or (place,)
        return any(one == ANYWHERE or Place.parse(one) in around for one in self.places)


class McpFile(BaseModel):
    """The file. Other fields, which other programs store in it, are ignored."""

    servers: dict[Name, McpServer] = Field(alias="mcpServers")
    admins: frozenset[str] = frozenset()
    """Ids of people, such as `discord:123`."""


def read_mcp_file(path: Path | None) -> McpFile:
    """Read the file. Raises SettingsError in one line if it cannot be read, or if other users may write it,
    since it names programs to run."""
    if path is None:
        return McpFile(mcpServers={})
    try:
        with path.expanduser().open(encoding="utf-8-sig") as file:
            require_ours(path, os.fstat(file.fileno()))
            return McpFile.model_validate_json(file.read())
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"HACHI_MCP: {path} cannot be read ({error})") from error
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"] if part != "[key]")
        reason = (
            f"HACHI_MCP: {path}: {f'{where}: ' if where else ''}{fault['msg'].removeprefix('Value error, ')}"
        )
    raise SettingsError(reason)  # without the cause, which shows the values, secrets too
