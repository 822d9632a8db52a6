"""Every setting, with its description. Each is an environment variable: `HACHI_` and its name in capitals, or
its conventional name (the alias)."""

import re
import reprlib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    AliasChoices,
    AnyHttpUrl,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    TypeAdapter,
    ValidationError,
    field_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from agent.errors import SettingsError
from agent.types import model_address
from agent.types.budget import Budget
from agent.types.home_files import read_settings_file
from agent.types.model_address import ProviderName
from memory.people.waking_hours import WakingHours

DEFAULT_MODEL = "gpt-5-mini"
RENAMED = {
    "look_back": "consolidate",
    "look_back_minutes": "consolidate_minutes",
    "upkeep_model": "consolidate_model",
    "upkeep_per_day": "consolidate_per_day",
    "traces": "trace_content",
}
"""The names of settings today, by their former names."""
GONE = frozenset(
    {"http_max_body", "summary_budget", "summary_reread", "prompt_facts", "consolidate_tokens", "unimportant"}
    | {"purge_minutes", "upkeep_per_hour", "reranker", "traces_url"}
)
"""Settings of earlier versions that no longer exist; their values are fixed now."""


def _ids(value: Any) -> Any:
    return frozenset(value.replace(",", " ").split()) if isinstance(value, str) else value


Ids = Annotated[
    frozenset[int],
    NoDecode,
    BeforeValidator(_ids),
    PlainSerializer(lambda ids: ",".join(map(str, sorted(ids)))),
]
Hours = Annotated[WakingHours, NoDecode, BeforeValidator(WakingHours.parse), PlainSerializer(str)]
BudgetSetting = Annotated[Budget, NoDecode, BeforeValidator(Budget.parse), PlainSerializer(str)]


def _patterns(value: str) -> str:
    """Check that each line is a regular expression."""
    for pattern in value.splitlines():
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression ({error})") from None
    return value


def _http_url(value: str) -> str:
    """Check that the text is an HTTP URL, and return it unchanged."""
    try:
        _HTTP_URL.validate_python(value)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False)[0]["msg"]) from None
    return value


_HTTP_URL = TypeAdapter(AnyHttpUrl)
HttpAddress = Annotated[str, AfterValidator(_http_url)]


def _conventional(name: str) -> Any:
    return Field(default=None, validation_alias=AliasChoices(name.lower(), name))


def variable_of(field: str) -> str:
    """Return the environment variable of a setting."""
    conventional = isinstance(Settings.model_fields[field].validation_alias, AliasChoices)
    return field.upper() if conventional else f"HACHI_{field.upper()}"


def _unreadable(name: str, fault: ErrorDetails) -> str:
    """Say why a setting, named by its field or variable, cannot be read. The value of a secret is not
    shown."""
    field, fields = name.lower(), Settings.model_fields
    if fault["type"] == "extra_forbidden":
        advice = _advice(field, {one: one for one in fields}) or "docs/settings.md lists what there is"
        return f"there is no setting {name!r}; {advice}"
    variable, address = variable_of(field), "://" in str(fault["input"])  # which may hold a password
    secret = address or "SecretStr" in str(fields[field].annotation)
    shown = variable if secret else f"{variable}={reprlib.repr(fault['input'])}"
    return f"{shown} cannot be read: {fault['msg'].removeprefix('Value error, ').lower()}"


class _Environment(EnvSettingsSource):
    """Settings from the environment, then the settings file. Ignores other programs' variables."""

    def __init__(self, settings: type[BaseSettings], given: Mapping[str, Any]) -> None:
        self._given = given
        super().__init__(settings)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        environment = super()._load_env_vars()
        named, home = (
            self._given.get(field, environment.get(f"hachi_{field}")) for field in ("env_file", "home")
        )
        file = Path(named or Path(home or user_data_path("hachi")) / ".env")
        written = {
            name.lower(): value for name, value in read_settings_file(file, required=bool(named)).items()
        }
        self.sources = {**dict.fromkeys(written, str(file)), **dict.fromkeys(environment, "environment")}
        """Where each variable was read, keyed by its lower-case name."""
        return {**written, **environment}


def sources() -> dict[str, str]:
    """Return where each setting that is set was read, by variable: `environment`, or the path of the file."""
    read = _Environment(Settings, {}).sources
    variables = map(variable_of, Settings.model_fields)
    return {name: read[name.lower()] for name in variables if name.lower() in read}


def misspelt() -> list[str]:
    """Return a line for each unknown `HACHI_*` variable that resembles a setting, with its suggestion."""
    variables = {field: variable_of(field) for field in Settings.model_fields}
    given = sorted(name.upper() for name in _Environment(Settings, {}).sources if name.startswith("hachi_"))
    unread = [name.removeprefix("HACHI_").lower() for name in given if name not in variables.values()]
    advised = {name.upper(): _advice(name, variables) for name in unread}
    return [f"HACHI_{name} is read by nothing; {advice}" for name, advice in advised.items() if advice]


def _advice(name: str, settings: Mapping[str, str]) -> str:
    """Suggest a setting for an unknown name; empty if none is similar."""
    if name in RENAMED:
        return f"it is {settings[RENAMED[name]]} now"
    if name in GONE:
        return "the setting was removed, so delete it"
    near = get_close_matches(name, settings, n=1)
    return f"did you mean {settings[near[0]]}?" if near else ""


def as_named_now(values: Mapping[str, Any]) -> dict[str, Any]:
    """Rename settings of an earlier version to today's names, and drop those that no longer exist."""
    named = {RENAMED.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in named.items() if name not in GONE}


class Settings(BaseSettings):
    """All settings, read once. Arguments take precedence over the environment, then the settings file."""

    model_config = SettingsConfigDict(env_prefix="HACHI_", frozen=True, extra="forbid", env_ignore_empty=True)

    home: Path = Field(default_factory=lambda: user_data_path("hachi"))
    """The data folder: database, chat history, log. Set it to keep several companions apart, or the data on
    another disk."""
    env_file: Path | None = None
    """A file with one setting a line; the environment wins over it. Unset: `.env` in `home`. Set it to keep
    secrets in another file."""
    database_url: SecretStr | None = _conventional("DATABASE_URL")
    """The URL of a PostgreSQL database, `postgresql://…`. Unset: SQLite in `home`. Set it for several
    processes or machines."""
    qdrant_url: HttpAddress | None = _conventional("QDRANT_URL")
    """The URL of a Qdrant server or cluster. Unset: the index is in this process. Set it if `hachi doctor`
    says that somebody has more than that index may hold."""
    qdrant_api_key: SecretStr | None = _conventional("QDRANT_API_KEY")
    """The key of the Qdrant server. Set it if the server requires one."""
    index_memory: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Megabytes of memory for the index in this process; it keeps the people who searched last. Raise it if
    many people search at once, lower it on a small machine."""

    openai_api_key: SecretStr | None = _conventional("OPENAI_API_KEY")
    """The key of the model's server. With neither a key nor a base URL, the offline stand-in answers. Set it
    for OpenAI, or for a server that requires a key."""
    openai_base_url: HttpAddress | None = _conventional("OPENAI_BASE_URL")
    """The URL of an OpenAI-compatible server: Ollama, vLLM, LM Studio, Mistral … Set it for any server but
    OpenAI's."""
    provider: ProviderName | None = None
    """The kind of server. It sets the usual base URL and the fields of a request. Unset: the base URL
    decides. Set it if the URL is a proxy's."""
    model: str | None = None
    """The model's name. Unset: `gpt-5-mini` at OpenAI; any other server needs a name. Without a server, it
    may be the path of a GGUF file, and Hachi serves that file itself. Set it for a better or a cheaper
    model."""
    fallback_model: Annotated[str, AfterValidator(model_address.checked)] | None = None
    """A second model, used while the first does not answer or has no credit left: `NAME@https://base/v1`,
    `NAME@PROVIDER`, or only NAME at the same server. Set it if answers must not depend on one provider."""
    fallback_key: SecretStr | None = None
    """The key of the second model's server. Unset: the first model's key, if both have the same server. Set
    it for a second provider."""
    api: Literal["responses", "chat"] | None = None
    """The API that is called. Unset: `responses` at OpenAI, `chat` elsewhere. Set it if a server supports the
    other one better."""
    structured: Literal["schema", "object", "none"] | None = None
    """How the reply's JSON is requested: with a JSON schema in every call, as a JSON object, or only in the
    prompt. Unset: a schema if the provider enforces it; together with tools only at OpenAI. Set it if replies
    come as broken JSON."""
    transcriber: Annotated[str, AfterValidator(model_address.checked)] | None = None
    """The model that transcribes voice messages in Discord and Slack: `NAME@https://base/v1`,
    `NAME@PROVIDER`, or only NAME at the model's server. The server needs OpenAI's `/audio/transcriptions`.
    `off`: none. Unset: `gpt-4o-mini-transcribe` if OpenAI's model answers. Set it to use a server of your
    own."""
    transcriber_key: SecretStr | None = None
    """The key of the transcriber's server. Unset: the model's key, if both have the same server. Set it for
    another provider."""
    images: bool | None = None
    """Whether the model accepts pictures. Unset: OpenAI's does, and one on this machine does if llama.cpp
    says so; other models are tried with pictures from Discord and Slack. Set it if a local model accepts
    pictures, or to send clients' pictures to another provider."""
    model_timeout: Annotated[float, Field(gt=0)] = 60.0
    """Seconds to wait for a model's answer; in a stream, for the first piece and for each next one. A call
    that times out is not retried. Raise it for a slow machine."""
    model_retries: Annotated[int, Field(ge=0, le=10)] = 2
    """How often a call is retried after 429, 5xx or a network fault, with back-off. Lower it if a second
    model should answer sooner."""
    answer_tokens: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """The most tokens of one answer; 0: no limit. Unset: 1,000 for a model on this machine, because it may
    never stop, and double that if it thinks first. Set it if replies are cut off, or too long."""
    model_slots: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """The most requests that are sent to the model's server at once. Unset: one for llama.cpp, Ollama and LM
    Studio, no limit elsewhere. Set it if the server was started with more slots."""
    context_tokens: Annotated[int, Field(ge=500)] | None = None
    """The model's window: tokens of a request and its answer. The history, passages and facts are cut to it.
    Unset: a request that is refused for its length is sent again with less text, and the limit is remembered.
    Set it to avoid these refusals, or to save money."""
    max_turns: Annotated[int, Field(ge=1, le=50)] = 5
    """The most model calls in a turn. The last call gets no tools, so it answers. Raise it for tools that
    build on each other."""

    embedder: str | None = None
    """`bundled` or `openai:NAME`. Unset: `openai:text-embedding-3-small` with an OpenAI key and no other base
    URL, otherwise `bundled`. Set it to find other words for the same thing, at a cost for each message."""
    memory: bool = True
    """Whether anything is remembered. Off: each turn is anonymous, reads no memory and stores only its trace.
    Earlier memories stay. Switch it off for a demonstration."""
    history_messages: Annotated[int, Field(ge=0, le=100)] = 12
    """How many of the last messages the model sees at most. Once there are more, only the newer half remains.
    Raise it if the model loses the thread of long conversations."""
    history_budget: BudgetSetting = Budget(24_000)
    """How much text of the last messages the model sees. Longer text is cut to half of this, in whole
    messages. Lower it for a small window."""
    context_budget: BudgetSetting = Budget(1_000)
    """How much text about the person the model sees: how to answer, profile, facts, tasks. Raise it if the
    model should know people without a search."""
    knowledge_budget: BudgetSetting = Budget(4_000)
    """How much text of documents one search returns. Raise it if passages end too early."""
    knowledge_first: bool = False
    """Whether to search the documents before the first model call, and not only when the model asks. Switch
    it on for a model that does not look things up."""
    importance_floor: Annotated[float, Field(ge=0, le=1)] = 0.3
    """The lowest importance of facts that are stored. Raise it if trifles are remembered."""
    half_life_days: Annotated[float, Field(gt=0)] | None = None
    """A memory's score is halved after so many days in which it was neither stated nor recalled; use slows
    the decay. Unset: age does not matter. Set it if old facts crowd out new ones."""
    judge: bool = True
    """Whether a model rules on facts that may repeat or contradict each other: in the consolidation call, and
    in a separate call for facts from elsewhere. Unset: only if a model consolidates. Off: both facts stay,
    unless their words prove it. Switch it off to save calls, at the price of repetitions."""
    consolidate: Literal["model", "plain", "off"] | None = None
    """How a conversation is consolidated after a turn (its summary, and what is known of the speaker): by one
    model call, by plain rules, or not at all. Unset: `model`, or `plain` with the offline stand-in. Set it to
    `plain` or `off` to save calls."""
    consolidate_minutes: Annotated[float, Field(ge=0, le=10_080)] = 360
    """Minutes without a message after which a conversation is consolidated, if at least six messages have no
    summary. It happens earlier if these messages leave the prompt. Lower it if facts are needed sooner."""
    consolidate_model: str | None = None
    """The model for consolidation and rulings. Unset: the model that answers. Set it to a cheaper model to
    save money."""
    consolidate_per_day: Annotated[int, Field(ge=0, le=1_000_000)] = 600
    """The most model calls for consolidation in a day (UTC), for one person in private or for one place; the
    rest waits. 0: no limit. Raise it if `hachi doctor` says that work waits for it."""
    mode: Literal["companion", "study", "work"] = "companion"
    """The mode of conversations for which none is set. It steers what consolidation looks for. Set it for a
    tutor or an assistant at work."""
    persona: Path | None = None
    """A Markdown file that says who the companion is. Unset: the pet that comes with Hachi. Set it to give
    the companion another name or manner."""
    unused_days: Annotated[int, Field(ge=1)] | None = None
    """Memories with an importance below 0.5 are deleted after so many days in which they were neither stated
    nor recalled. Unset: never. Set it if memories should fade for good."""
    message_days: Annotated[int, Field(ge=1)] | None = None
    """Messages and replies are deleted after so many days, and summaries are rewritten without them; facts
    stay. Unset: never. Set it if a policy limits how long messages are kept."""
    max_memories: Annotated[int, Field(ge=1)] | None = None
    """The most memories that a person may have. The least important ones, longest unused, are deleted first.
    Unset: no limit. Set it if many people share a small disk."""
    forget_undo_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10.0
    """Minutes in which a person can undo a forgetting; then it is purged. 0: it is purged at once. Set it to
    0 if forgotten data must be deleted at once."""
    waking_hours: Hours = WakingHours()
    """The hours in which check-ins are sent to people who want them, by the person's clock. Set it to the
    habits of your people."""
    read_places: bool = False
    """Whether a private conversation also reads the places in which the person wrote and which they can still
    read. Set it if a companion should know people wherever they talk with it."""
    tools: str = ""
    """Functions that the model may call besides Hachi's own tools, separated by blanks:
    `shop.orders:find_order`. Set it to give the companion tools of your program."""
    mcp: Path | None = None
    """A file of MCP servers, with the key `mcpServers` as in other programs. The model may call their tools.
    Set it to let the model look things up elsewhere."""
    trace_content: Literal["full", "redacted", "none", "off"] = "redacted"
    """What a trace contains. `full`: everything. `redacted`: no secrets, and nothing that `trace_redact`
    matches. `none`: only what was done, how it ended and how long it took. `off`: there are no traces. Set it
    to `none` if operators may not read messages."""
    trace_redact: Annotated[str, AfterValidator(_patterns)] | None = None
    """Regular expressions, one a line. Matches are removed from traces before they are written. Set it for
    secrets of your domain, such as account numbers."""
    trace_days: Annotated[float, Field(gt=0)] | None = 30.0
    """Traces are deleted after so many days; `none`: never. Lower it to save disk space."""
    otlp_endpoint: Annotated[str, Field(pattern=r"^https?://")] | None = None
    """The URL of an OpenTelemetry collector, which also gets each trace, by OTLP over HTTP:
    `http://127.0.0.1:4318`. Set it to collect the traces of all your services in one place."""
    http_rate: Annotated[int, Field(ge=0, le=1_000_000)] = 600
    """The most requests a minute to the API with one key for one person, and as many again to the console. 0:
    no limit. Lower it if strangers have keys."""
    http_cors: str = ""
    """Origins, separated by blanks, whose pages may call `hachi serve` from a browser; `*`: any. Empty: none.
    Set it for a page of your own."""
    console_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    """The URL at which people reach the console of `hachi serve`; links to the console begin with it. Unset:
    in answers over HTTP, 127.0.0.1 with the server's port. With https, the console's cookie is sent only over
    TLS. Set it behind a proxy."""
    forward_user_info_header_jwt_secret: SecretStr | None = _conventional(
        "FORWARD_USER_INFO_HEADER_JWT_SECRET"
    )
    """The secret with which Open WebUI signs the tokens of its users. If it is set, a service's key acts only
    for the user of such a token, and for nobody without a token. Set it if others can reach the server."""
    discord_token: SecretStr | None = _conventional("DISCORD_TOKEN")
    """The token of the bot that `hachi discord` runs. Set it to run a Discord bot."""
    discord_api_url: HttpAddress | None = _conventional("DISCORD_API_URL")
    """The URL of Discord's API, such as a proxy's `http://127.0.0.1:8080/api/v10`. Unset: Discord's own. Set
    it if the bot can reach Discord only through a proxy."""
    discord_servers: Ids = frozenset()
    """Ids of the servers where the bot works, separated by commas. Empty: all servers that it is in. Set it
    if others may invite the bot."""
    discord_channels: Ids = frozenset()
    """Ids of the channels where the bot works, also in their threads. Empty: all channels that it sees. Set
    it to keep the bot out of the others."""
    discord_roles: Ids = frozenset()
    """Ids of roles; people need one of these roles to use the bot. If it is set, the bot answers no direct
    messages. Set it for a bot that is not for everybody."""
    bot_daily_turns: Annotated[int, Field(ge=0, le=100_000)] = 0
    """The most turns of one person with a bot in a day (UTC); 0: no limit. Set it if strangers use your
    model."""
    slack_bot_token: SecretStr | None = _conventional("SLACK_BOT_TOKEN")
    """The token of the bot that `hachi slack` runs: `xoxb-…`. Set it to run a Slack bot."""
    slack_app_token: SecretStr | None = _conventional("SLACK_APP_TOKEN")
    """The app's token for Socket Mode: `xapp-…`. Set it to run the bot without a public URL."""
    slack_signing_secret: SecretStr | None = _conventional("SLACK_SIGNING_SECRET")
    """The secret with which Slack signs its requests, for `hachi slack --http`. Set it if the bot has a URL
    that Slack can reach."""
    slack_api_url: HttpAddress | None = _conventional("SLACK_API_URL")
    """The URL of Slack's API. Unset: `https://slack.com/api/`. GovSlack's is `https://slack-gov.com/api/`.
    Set it for GovSlack."""
    decisions: Literal["on", "redacted", "off"] = "on"
    """Whether decisions on memories are written to `decisions.jsonl` in `home`: with the facts, without them,
    or not at all. Set it to `redacted` if others read the logs."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """The level of `hachi.log` in `home`. Set it to DEBUG to look for a fault."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, _Environment(settings_cls, init_settings())

    @field_validator("trace_days", mode="before")
    @classmethod
    def _for_good(cls, value: Any) -> Any:
        return None if isinstance(value, str) and value.strip().lower() == "none" else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @classmethod
    def load(cls, **values: Any) -> "Settings":
        """Read the settings from the environment; `values` win over it. Raises SettingsError with one line
        that names the variable."""
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = _unreadable(str(first["loc"][0]), first)
        raise SettingsError(reason)  # without the cause, which shows the values, secrets too

    model_variable: ClassVar[str] = "HACHI_MODEL"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"

    @property
    def offline(self) -> bool:
        server = self.openai_api_key or self.openai_base_url or self.provider
        return server is None and self.model_file is None

    @property
    def model_file(self) -> Path | None:
        """Return the file that `model` names, which Hachi serves itself; None if a server is set."""
        elsewhere = self.openai_base_url or self.provider or self.model is None
        if elsewhere or not model_address.names_file(str(self.model)):
            return None
        return Path(str(self.model)).expanduser()

    @property
    def chosen_embedder(self) -> str:
        if self.embedder:
            return self.embedder
        at_openai = not (self.openai_base_url or self.model_file or self.provider not in (None, "openai"))
        return "openai:text-embedding-3-small" if at_openai and self.openai_api_key else "bundled"

    @property
    def chosen_model(self) -> str:
        if self.offline:
            return "offline"
        if file := self.model_file:
            try:
                return model_address.servable(file).stem
            except ValueError as error:
                raise SettingsError(f"{self.model_variable}: {error}") from None
        if self.model:
            return self.model
        if self.openai_base_url or self.provider not in (None, "openai"):
            given = "OPENAI_BASE_URL" if self.openai_base_url else "HACHI_PROVIDER"
            raise SettingsError(f"{given} is set, so HACHI_MODEL must name one of that server's models")
        return DEFAULT_MODEL
