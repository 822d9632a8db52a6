"""Settings: from the environment, documented, and told apart when they cannot be read."""

import ast
import inspect
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import agent.settings
from agent.errors import SettingsError
from agent.settings import DEFAULT_MODEL, Settings
from agent.types.budget import Budget
from memory.people.waking_hours import WakingHours

BOTS = {"discord_token", "slack_bot_token", "slack_app_token", "slack_signing_secret"}
SECRETS = {"openai_api_key", "qdrant_api_key", "database_url"} | BOTS
SECRETS |= {"forward_user_info_header_jwt_secret"}
CONVENTIONAL = {"discord_api_url", "openai_base_url", "qdrant_url", "slack_api_url"} | SECRETS

VALUES: dict[str, tuple[str, Any]] = {
    # name: (as written in the environment, as read)
    "env_file": ("/dev/null", Path("/dev/null")),
    "console_url": ("https://hachi.example", "https://hachi.example"),
    **dict.fromkeys(
        ("openai_base_url", "qdrant_url", "discord_api_url", "slack_api_url"),
        ("http://127.0.0.1:6333", "http://127.0.0.1:6333"),
    ),
    "trace_content": ("none", "none"),
    "otlp_endpoint": ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
    "provider": ("mistral", "mistral"),
    "api": ("chat", "chat"),
    "structured": ("object", "object"),
    "model_retries": ("0", 0),
    "importance_floor": ("0.5", 0.5),
    "decisions": ("redacted", "redacted"),
    "log_level": ("debug", "DEBUG"),
    "consolidate": ("plain", "plain"),
    "mode": ("study", "study"),
    "context_tokens": ("8000", 8000),
    "context_budget": ("125 tokens", Budget(125, "tokens")),
    "waking_hours": ("8-22", WakingHours(8, 22)),
}


def value(name: str) -> tuple[str, Any]:
    """A value for a setting; one that can be read where none is given above."""
    for written in ("yes", "7", "0.5"):
        if name not in VALUES:
            with suppress(ValidationError):
                VALUES[name] = (written, plain(Settings(**{name: written}), name))
    return VALUES[name]


def plain(settings: Settings, name: str) -> Any:
    read = getattr(settings, name)
    return read.get_secret_value() if name in SECRETS else read


def variable(name: str) -> str:
    return name.upper() if name in CONVENTIONAL else f"HACHI_{name.upper()}"


def test_each_setting_is_an_environment_variable_that_an_argument_wins_over(monkeypatch):
    values = {name: value(name) for name in Settings.model_fields}
    for name, (written, _) in values.items():
        monkeypatch.setenv(variable(name), written)
    loaded = Settings.load()
    for name in values:
        monkeypatch.setenv(variable(name), "1")
    given = Settings.load(**{name: written for name, (written, _) in values.items()})
    for name, (_, read) in values.items():
        assert plain(loaded, name) == plain(given, name) == read
        monkeypatch.setenv(variable(name), "")
    assert Settings.load() == Settings(), "an empty variable is an unset one"


def test_each_setting_has_a_docstring():
    [model] = [
        node
        for node in ast.parse(inspect.getsource(agent.settings)).body
        if isinstance(node, ast.ClassDef) and node.name == "Settings"
    ]
    described = {
        node.target.id
        for node, after in pairwise(model.body)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and str(after.value.value).endswith((".", "…"))
    }
    assert described >= Settings.model_fields.keys()


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("max_turns", "0"),
        ("max_turns", "many"),
        ("model_retries", "11"),
        ("importance_floor", "1.5"),
        ("log_level", "LOUD"),
        ("api", "assistants"),
    ],
)
def test_one_that_cannot_be_read_is_named_in_one_line(name, written, monkeypatch):
    monkeypatch.setenv(variable(name), written)

    with pytest.raises(SettingsError) as raised:
        Settings.load()

    assert str(raised.value).startswith(f"{variable(name)}='{written}' cannot be read: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("hime", "there is no setting 'hime'; did you mean home?"),
        ("model_timout", "did you mean model_timeout?"),
        ("look_back", "it is consolidate now"),
        ("zzz", "docs/settings.md lists what there is"),
    ],
)
def test_an_unknown_one_is_refused_with_the_one_that_was_probably_meant(name, told):
    with pytest.raises(SettingsError) as raised:
        Settings.load(**{name: "sk-secret"})
    assert told in str(raised.value)
    assert "sk-secret" not in str(raised.value)


def test_a_secret_is_not_shown_and_is_named_where_it_cannot_be_read():
    for name in SECRETS:
        settings = Settings(**{name: "s3cret"})
        assert "s3cret" not in f"{settings!r} {settings} {settings.model_dump()}"
        with pytest.raises(SettingsError) as raised:
            Settings.load(**{name: ["s3cret"]})
        assert str(raised.value).startswith(f"{variable(name)} cannot be read")
        fault: BaseException | None = raised.value
        while fault is not None:
            assert "s3cret" not in str(fault)
            fault = fault.__cause__ if fault.__suppress_context__ else fault.__cause__ or fault.__context__


OWN = "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("given", "offline", "model", "embedder"),
    [
        ({}, True, "offline", "bundled"),
        ({"model": "tiny"}, True, "offline", "bundled"),
        ({"openai_api_key": "sk"}, False, DEFAULT_MODEL, "openai:text-embedding-3-small"),
        ({"openai_base_url": OWN, "model": "tiny"}, False, "tiny", "bundled"),
        ({"openai_base_url": OWN, "openai_api_key": "sk", "model": "tiny"}, False, "tiny", "bundled"),
        (
            {"openai_base_url": OWN, "model": "tiny", "embedder": "openai:nomic"},
            False,
            "tiny",
            "openai:nomic",
        ),
    ],
)
def test_defaults_follow_from_the_key_and_the_server(given, offline, model, embedder):
    settings = Settings(**given)

    assert settings.offline is offline
    assert settings.chosen_model == model
    assert settings.chosen_embedder == embedder


def test_a_server_of_ones_own_needs_the_name_of_a_model():
    with pytest.raises(SettingsError, match="HACHI_MODEL must name"):
        _ = Settings(openai_base_url=OWN).chosen_model
    with pytest.raises(SettingsError, match="HACHI_PROVIDER is set, so HACHI_MODEL must name"):
        _ = Settings(provider="ollama").chosen_model


WRITTEN = "HACHI_MODEL=tiny\nOPENAI_BASE_URL='http://127.0.0.1:1/v1'\nHACHI_MODE=\nPOSTGRES_PASSWORD=x\n"


def written(file: Path, text: str = WRITTEN) -> Path:
    file.write_text(text)
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("setting", ["home", "env_file"])
def test_the_file_of_the_home_or_the_one_that_is_named_is_read_below_the_environment(
    setting, tmp_path, monkeypatch
):
    file = written(tmp_path / ".env")
    given = {setting: tmp_path if setting == "home" else file}
    assert Settings.load(**given).model == "tiny"
    monkeypatch.setenv(variable(setting), str(given[setting]))
    settings = Settings.load()
    assert (settings.model, settings.openai_base_url, settings.mode) == ("tiny", OWN, "companion")
    assert Settings.load(home=tmp_path / "other", env_file=None).model is None, "an argument wins"
    monkeypatch.setenv("HACHI_MODEL", "huge")
    assert Settings.load().model == "huge"
    assert Settings.load(model="given").model == "given"
    written(file, "HACHI_MAX_TURNS=many")
    with pytest.raises(SettingsError, match="HACHI_MAX_TURNS='many' cannot be read"):
        Settings.load()


def test_no_file_of_the_working_directory_is_read(tmp_path, monkeypatch):
    written(tmp_path / ".env", "OPENAI_BASE_URL=http://stranger.example\nDATABASE_URL=postgresql://shop\n")
    monkeypatch.chdir(tmp_path)
    settings = Settings.load()
    assert (settings.openai_base_url, settings.database_url) == (None, None)


def test_a_file_that_others_could_have_written_or_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    file = written(tmp_path / ".env")
    for mode in (0o620, 0o602):
        file.chmod(mode)
        with pytest.raises(SettingsError, match="others may write it") as raised:
            Settings.load(home=tmp_path)
        assert str(file) in str(raised.value)
    file.chmod(0o644)
    assert Settings.load(home=tmp_path).model == "tiny"
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    if file.stat().st_uid:
        with pytest.raises(SettingsError, match="belongs to another user"):
            Settings.load(home=tmp_path)
    monkeypatch.undo()
    file.write_bytes(b"HACHI_MODEL=\xff\xfe")
    for given in ({"home": tmp_path}, {"env_file": tmp_path / "missing"}, {"env_file": tmp_path}):
        with pytest.raises(SettingsError, match=r"cannot be read \(.+\)$"):
            Settings.load(**given)
