"""Every setting, with a line on what it does. Each is an environment variable: `HACHI_` and its name in
capitals, or the conventional name given as its alias."""

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
from pydantic.fields import FieldInfo
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
"""Settings by their former names."""
GONE = frozenset(
    {"http_max_body", "summary_budget", "summary_reread", "prompt_facts", "consolidate_tokens", "unimportant"}
    | {"purge_minutes", "upkeep_per_hour", "reranker", "traces_url"}
)
"""Settings that nobody set."""


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
    """One a line, each a regular expression."""
    for pattern in value.splitlines():
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression ({error})") from None
    return value


def _http_url(value: str) -> str:
    """Check an address of HTTP, which stays as it is written."""
    try:
        _HTTP_URL.validate_python(value)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False)[0]["msg"]) from None
    return value


_HTTP_URL = TypeAdapter(AnyHttpUrl)
HttpAddress = Annotated[str, AfterValidator(_http_url)]


def _conventional(name: str, field: str) -> Any:
    return Field(default=None, validation_alias=AliasChoices(field, name))


def _variable(fields: Mapping[str, FieldInfo], name: str) -> tuple[str, bool]:
    """Map names and aliases of settings to their environment variable, and whether it is a secret."""
    field = fields[name.lower()]
    conventional = isinstance(field.validation_alias, AliasChoices)
    variable = name.upper() if conventional else f"HACHI_{name.upper()}"
    return variable, "SecretStr" in str(field.annotation)


def _unreadable(fields: Mapping[str, FieldInfo], name: str, fault: ErrorDetails) -> str:
    """Why a setting cannot be read, without the value of a secret."""
    if fault["type"] == "extra_forbidden":
        advice = (
            _advice(name.lower(), {field: field for field in fields})
            or "docs/settings.md lists what there is"
        )
        return f"there is no setting {name!r}; {advice}"
    variable, secret = _variable(fields, name)
    secret = secret or "://" in str(fault["input"])  # an address may hold a password
    shown = variable if secret else f"{variable}={reprlib.repr(fault['input'])}"
    return f"{shown} cannot be read: {fault['msg'].removeprefix('Value error, ').lower()}"


class _Environment(EnvSettingsSource):
    """The environment, and below it the settings file. Others' variables are left alone."""

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
        """Where each variable was read, by its name in small letters."""
        return {**written, **environment}


def sources() -> dict[str, str]:
    """Where each setting that is set was read, by its variable: `environment`, or the path of the file."""
    read = _Environment(Settings, {}).sources
    variables = map(variable_of, Settings.model_fields)
    return {name: read[name.lower()] for name in variables if name.lower() in read}


def variable_of(field: str) -> str:
    """Return the environment variable of a setting."""
    return _variable(Settings.model_fields, field)[0]


def misspelt() -> list[str]:
    """Say of each variable `HACHI_*` that nothing reads, but is nearly a setting, which one it may mean."""
    variables = {field: variable_of(field) for field in Settings.model_fields}
    given = sorted(name.upper() for name in _Environment(Settings, {}).sources if name.startswith("hachi_"))
    unread = [name.removeprefix("HACHI_").lower() for name in given if name not in variables.values()]
    advised = {name.upper(): _advice(name, variables) for name in unread}
    return [f"HACHI_{name} is read by nothing; {advice}" for name, advice in advised.items() if advice]


def _advice(name: str, settings: Mapping[str, str]) -> str:
    """Say which setting one of this name, which there is not, may mean; empty where nobody can tell."""
    if name in RENAMED:
        return f"it is {settings[RENAMED[name]]} now"
    if name in GONE:
        return "what it set is fixed now, so take it out"
    near = get_close_matches(name, settings, n=1)
    return f"did you mean {settings[near[0]]}?" if near else ""


def as_named_now(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that an earlier version recorded under the names of this one, without those that are
    gone."""
    named = {RENAMED.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in named.items() if name not in GONE}


class Settings(BaseSettings):
    """Read once, then passed along. Arguments win over the environment, and that over the settings file."""

    model_config = SettingsConfigDict(env_prefix="HACHI_", frozen=True, extra="forbid", env_ignore_empty=True)

    home: Path = Field(default_factory=lambda: user_data_path("hachi"))
    """The data folder: database, chat history, log. Set it to keep several companions apart, or the data on
    another disk."""
    env_file: Path | None = None
    """A file with settings, a line each, which the environment wins over; unset is `.env` in `home`. Set it
    where secrets are kept in a file of their own."""
    database_url: SecretStr | None = _conventional("DATABASE_URL", "database_url")
    """`postgresql://…` to share one database between processes; unset is SQLite in `home`. Set it for several
    processes or machines."""
    qdrant_url: HttpAddress | None = _conventional("QDRANT_URL", "qdrant_url")
    """A Qdrant server, or a cluster; unset searches in this process. Set it where `hachi doctor` says that
    somebody has more than the index may hold."""
    qdrant_api_key: SecretStr | None = _conventional("QDRANT_API_KEY", "qdrant_api_key")
    """Its key. Set it where that server asks for one."""
    index_memory: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Megabytes that the index in this process may take: those who searched last are kept in it. Raise it
    where many people search at once, lower it on a small machine."""

    openai_api_key: SecretStr | None = _conventional("OPENAI_API_KEY", "openai_api_key")
    """With neither this nor a base URL, the offline stand-in answers. Set it for OpenAI, or a server that
    asks for a key."""
    openai_base_url: HttpAddress | None = _conventional("OPENAI_BASE_URL", "openai_base_url")
    """Any OpenAI-compatible server: Ollama, vLLM, LM Studio, Mistral … Set it for any other than OpenAI."""
    provider: ProviderName | None = None
    """What kind of server it is: its usual base URL, and the fields it takes. Unset, the base URL tells. Set
    it where the URL is a proxy's."""
    model: str | None = None
    """The model's name; unset is `gpt-5-mini` at OpenAI. A server of your own needs one. Without a server, it
    may be the path of a GGUF file, which Hachi serves itself. Set it for a better or a cheaper one."""
    fallback_model: Annotated[str, AfterValidator(model_address.checked)] | None = None
    """A second model, for while the first does not answer or wants money: `NAME@https://base/v1`,
    `NAME@PROVIDER`, or NAME alone at the same server. Set it where answers must not wait for one provider."""
    fallback_key: SecretStr | None = None
    """The key of the second model's server; unset is the first's, if it is the same server. Set it for a
    second provider."""
    api: Literal["responses", "chat"] | None = None
    """Which API the server speaks; unset is the provider's: `responses` at OpenAI and `chat` elsewhere. Set
    it where a server speaks the other one better."""
    structured: Literal["schema", "object", "none"] | None = None
    """How the reply's JSON is asked for: by json_schema with every call, as a JSON object, or by the prompt
    alone. Unset is the provider's: a schema where one is enforced, beside tools at OpenAI only. Set it where
    replies come as broken JSON."""
    transcriber: Annotated[str, AfterValidator(model_address.checked)] | None = None
    """What hears voice messages in Discord and Slack: `NAME@https://base/v1`, `NAME@PROVIDER`, or NAME alone
    at the model's server, which has OpenAI's `/audio/transcriptions`; `off` for nothing. Unset:
    `gpt-4o-mini-transcribe` where OpenAI's model answers. Set it to a server of your own."""
    transcriber_key: SecretStr | None = None
    """The key of that server; unset is the model's, if it is the same server. Set it for another provider."""
    images: bool | None = None
    """Whether the model can see, so that pictures are shown to it. Unset: OpenAI's can, a server on this
    machine where llama.cpp says so, and others are tried with the pictures of Discord and Slack. Set it where
    a local model sees, or a client's pictures are for another provider's."""
    model_timeout: Annotated[float, Field(gt=0)] = 60.0
    """Seconds to wait for a model's whole answer, and in a stream for its first piece and each next one; a
    call that takes longer is not tried again. Raise it for a slow machine."""
    model_retries: Annotated[int, Field(ge=0, le=10)] = 2
    """How often a call is tried again after 429, 5xx or a network fault, with back-off. Lower it where a
    fallback should answer sooner."""
    answer_tokens: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Tokens of one answer of the model at most; 0 is any number. Unset: 1,000 of a model on this machine,
    which may write without an end, and double where it thinks first. Set it where replies are cut off, or too
    long."""
    model_slots: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Requests that the model's server works on at once. Unset: one where it is llama.cpp, Ollama or LM
    Studio, any number elsewhere. Set it where the server was started with more."""
    context_tokens: Annotated[int, Field(ge=500)] | None = None
    """Tokens of a request and its answer that the model takes; the history, passages and facts are cut to it.
    Unset: what the server refuses for its length is asked again with less, and remembered. Set it where
    refusals cost time, or to spare money."""
    max_turns: Annotated[int, Field(ge=1, le=50)] = 5
    """Model calls in a turn; the last one may call no tool, and answers. Raise it for tools that build on
    each other."""

    embedder: str | None = None
    """`bundled` or `openai:NAME`; unset is `openai:text-embedding-3-small` with an OpenAI key and no other
    base URL, else `bundled`. Set it to find what is put in other words, at a cost a message."""
    memory: bool = True
    """Whether anything is remembered. Off: each turn is anonymous, so nothing is read for it and nothing of
    it is kept but its trace; what was remembered before stays. Switch it off for a demonstration."""
    history_messages: Annotated[int, Field(ge=0, le=100)] = 12
    """How many of the last messages the model sees at most; once they are more, half of them remain. Raise it
    where the model loses the thread of long talks."""
    history_budget: BudgetSetting = Budget(24_000)
    """How much of the last messages the model sees; what is more is cut to half of it, in whole messages.
    Lower it for a small window."""
    context_budget: BudgetSetting = Budget(1_000)
    """How much it sees of what is known of the person: how to answer, profile, facts, tasks. Raise it where
    it should know people without a search."""
    knowledge_budget: BudgetSetting = Budget(4_000)
    """How much text of documents one search returns. Raise it where passages end too early."""
    knowledge_first: bool = False
    """Search the documents before the first model call, and not only when the model asks. Switch it on for a
    model that does not look things up."""
    importance_floor: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Facts of less importance are not kept. Raise it where trifles are remembered."""
    half_life_days: Annotated[float, Field(gt=0)] | None = None
    """After so many days without being said or recalled, a memory's score is halved; use slows the decay.
    Unset: age does not matter. Set it where old facts crowd out new ones."""
    judge: bool = True
    """Let a model rule on facts that may repeat or contradict each other: in the consolidation call, and in a
    call of its own for facts that come from elsewhere. Unset, it rules only where a model consolidates. Off:
    both facts stay, unless the words prove it. Switch it off to save calls, at the price of repetitions."""
    consolidate: Literal["model", "plain", "off"] | None = None
    """What consolidates a conversation after a turn, its summary and what is known of the speaker: one model
    call, plain rules, or nothing. Unset is `model`, and `plain` with the offline stand-in. Set it to `plain`
    or `off` to save calls."""
    consolidate_minutes: Annotated[float, Field(ge=0, le=10_080)] = 360
    """After how many minutes in which nobody writes a conversation is consolidated where at least six
    messages have no summary, if they do not leave the prompt earlier. Lower it where facts of a talk are
    wanted sooner."""
    consolidate_model: str | None = None
    """The model for consolidation and rulings, such as a cheaper one; unset is the one that answers. Set it
    to spare the better model for answers."""
    consolidate_per_day: Annotated[int, Field(ge=0, le=1_000_000)] = 600
    """Model calls a day (UTC) that consolidate what one person says in private, or what is said in one place;
    what is over waits. 0 is any number. Raise it where `hachi doctor` says that work waits for it."""
    mode: Literal["companion", "study", "work"] = "companion"
    """The mode of conversations that set none: it steers what consolidation looks for. Set it for a tutor or
    an assistant at work."""
    persona: Path | None = None
    """A Markdown file that says who the companion is, in place of the pet that comes with Hachi. Set it to
    give it another name or manner."""
    unused_days: Annotated[int, Field(ge=1)] | None = None
    """After so many days without being said or recalled, memories of less importance than 0.5 are deleted.
    Unset: none is. Set it where memories should fade for good."""
    message_days: Annotated[int, Field(ge=1)] | None = None
    """Messages and replies are deleted after so many days, and summaries written again without them; facts
    stay. Unset: none is. Set it where a policy limits how long messages are kept."""
    max_memories: Annotated[int, Field(ge=1)] | None = None
    """How many memories a person may have; the least important, longest unused are deleted first. Unset: no
    limit. Set it where many people share a small disk."""
    forget_undo_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10.0
    """How long what a person had forgotten can be brought back; then it is gone for good. 0: never. Set it to
    0 where forgotten means gone at once."""
    waking_hours: Hours = WakingHours()
    """The hours in which a person who wants it is asked how something went, by their clock. Set it to where
    people live."""
    read_places: bool = False
    """Whether a person may read in private, too, the places in which they wrote and which they can still
    read. Set it where a companion is to know people wherever they talk with it."""
    tools: str = ""
    """Functions that the model may call besides Hachi's own, between blanks: `shop.orders:find_order`. Set it
    to give the companion tools of your program."""
    mcp: Path | None = None
    """A file of MCP servers (`mcpServers`, as other programs have it) whose tools the model may call. Set it
    to let it look things up elsewhere."""
    trace_content: Literal["full", "redacted", "none", "off"] = "redacted"
    """What a trace holds: everything; everything but secrets and what `trace_redact` matches; no content,
    only what was done, how it ended and how long it took; with `off` no turn leaves one. Set it to `none`
    where operators may read no messages."""
    trace_redact: Annotated[str, AfterValidator(_patterns)] | None = None
    """Regular expressions, one a line; matches are removed from traces before they are written. Set it for
    what is secret in your domain, such as account numbers."""
    trace_days: Annotated[float, Field(gt=0)] | None = 30.0
    """Traces are deleted after so many days; `none` keeps them. Lower it to save disk."""
    otlp_endpoint: Annotated[str, Field(pattern=r"^https?://")] | None = None
    """An OpenTelemetry collector that gets each trace too, by OTLP over HTTP: `http://127.0.0.1:4318`. Set it
    where the traces of all your services are in one place."""
    http_rate: Annotated[int, Field(ge=0, le=1_000_000)] = 600
    """Requests a minute that one key may make of the API for one person, and as many of the console; 0 is any
    number. Lower it where strangers hold keys."""
    http_cors: str = ""
    """Origins, between blanks, whose pages may ask `hachi serve` from a browser; `*` is any. Empty: none. Set
    it for a page of your own."""
    console_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    """Where people reach the console of `hachi serve`; links to it begin so. Unset, in answers over HTTP, it
    is 127.0.0.1 with the server's port. With https, the console's cookie goes over TLS alone. Set it behind a
    proxy."""
    forward_user_info_header_jwt_secret: SecretStr | None = _conventional(
        "FORWARD_USER_INFO_HEADER_JWT_SECRET", "forward_user_info_header_jwt_secret"
    )
    """What Open WebUI signs its users with. Then a service's key acts for a user by such a token alone, and
    for nobody without one. Set it where others can reach the server."""
    discord_token: SecretStr | None = _conventional("DISCORD_TOKEN", "discord_token")
    """The token of the bot that `hachi discord` is. Set it to run one."""
    discord_api_url: HttpAddress | None = _conventional("DISCORD_API_URL", "discord_api_url")
    """Where Discord's API is, such as a proxy's `http://127.0.0.1:8080/api/v10`; unset is Discord's own.
    Set it where bots reach Discord through a proxy alone."""
    discord_servers: Ids = frozenset()
    """The ids of the servers where the bot works, with commas between them; empty is all that it is in. Set
    it where others may invite the bot."""
    discord_channels: Ids = frozenset()
    """The ids of the channels where it works, with their threads; empty is all that it sees. Set it to
    keep the bot out of the others."""
    discord_roles: Ids = frozenset()
    """The ids of the roles of which people need one to use it; then it answers no direct messages. Set it
    for a bot that is not for everybody."""
    bot_daily_turns: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Turns that one person may have with a bot in a day (UTC); 0 is any number. Set it where strangers use
    your model."""
    slack_bot_token: SecretStr | None = _conventional("SLACK_BOT_TOKEN", "slack_bot_token")
    """The token of the bot that `hachi slack` is: `xoxb-…`. Set it to run one."""
    slack_app_token: SecretStr | None = _conventional("SLACK_APP_TOKEN", "slack_app_token")
    """The app's token for Socket Mode: `xapp-…`. Set it to run the bot without an address of its own."""
    slack_signing_secret: SecretStr | None = _conventional("SLACK_SIGNING_SECRET", "slack_signing_secret")
    """What Slack signs its requests with; for `hachi slack --http`. Set it where the bot has an address
    that Slack can reach."""
    slack_api_url: HttpAddress | None = _conventional("SLACK_API_URL", "slack_api_url")
    """Where Slack's API is; unset is `https://slack.com/api/`, and GovSlack's is
    `https://slack-gov.com/api/`. Set it for GovSlack."""
    decisions: Literal["on", "redacted", "off"] = "on"
    """Whether `decisions.jsonl` in `home` gets a line for the decisions on memories: with the facts, without
    them, or none. Set it to `redacted` where logs are read by others."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Of `hachi.log` in `home`. Set it to DEBUG to look for a fault."""

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
        """Read the settings from the environment; `values` come first. Raises SettingsError in one line that
        names the variable."""
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = _unreadable(cls.model_fields, str(first["loc"][0]), first)
        raise SettingsError(reason)  # without the cause, which shows what was given, secrets too

    model_variable: ClassVar[str] = "HACHI_MODEL"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"

    @property
    def offline(self) -> bool:
        server = self.openai_api_key or self.openai_base_url or self.provider
        return server is None and self.model_file is None

    @property
    def model_file(self) -> Path | None:
        """The file that `model` names, which Hachi serves itself; None where a server is named."""
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
