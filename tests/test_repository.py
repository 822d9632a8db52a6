"""What holds for the repository as a whole."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import hachi
from agent.settings import Settings
from tests.budget import over_budget

HERE = Path(__file__).resolve().parent.parent

HOSTS = re.compile(
    "|".join(("py" + r"pi\.org", "python" + "hosted", "np" + "mjs", r"deb\." + "debian")), re.I
)
"""Package indexes: which one is used is for the machine that installs."""
PATHS = re.compile(
    r"(?:^|[^A-Za-z0-9_.])/(?:" + "|".join(("wo" + "rk", "fa" + "rm", "ro" + "ot")) + ")/", re.M
)
"""Folders of the machines that this was written on."""


@cache
def texts() -> dict[str, str]:
    """All that is or would be committed, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip("not a git repository")
    found = {}
    for name in filter(None, listed.stdout.split("\0")):
        if (HERE / name).is_file():
            data = (HERE / name).read_bytes()
            if b"\0" not in data:
                found[name] = data.decode("utf-8", "replace")
    return found


def test_no_file_names_a_package_index_or_a_folder_of_one_machine() -> None:
    found = [name for name, text in texts().items() if HOSTS.search(text) or PATHS.search(text)]
    assert found == []


@pytest.mark.parametrize(
    "text", ["see http" + "s://py" + "pi.org/x", "cd /wo" + "rk/main", "'/ro" + "ot/.ssh'"]
)
def test_such_a_name_would_be_seen(text: str) -> None:
    assert HOSTS.search(text) or PATHS.search(text)


def links(page: Path) -> set[Path]:
    """The files that a page leads to."""
    found = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    return {(page.parent / link).resolve() for link in found if "://" not in link}


PAGES = sorted([*HERE.glob("*.md"), *HERE.glob("docs/*.md")])


def test_readme_leads_to_every_page() -> None:
    reached, new = set(), {HERE / "README.md"}
    while new:
        reached |= new
        new = {to for page in new for to in links(page) if to.suffix == ".md" and to.is_file()} - reached
    assert set(PAGES) <= reached


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_leads_nowhere(page: Path) -> None:
    assert [str(to) for to in links(page) if not to.exists()] == []


def test_every_file_the_pages_name_is_there() -> None:
    named = re.compile(r"`((?:agent|memory|tools|prompts|tests|benchmarks|examples|docs)/[\w./-]+)`")
    missing = {
        (page.name, name)
        for page in PAGES
        for name in named.findall(page.read_text(encoding="utf-8"))
        if not (HERE / name).exists()
    }
    assert missing == set()


def test_every_test_that_the_comparison_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (HERE / "docs/comparison.md").read_text(encoding="utf-8")))
    tests = "".join(text for name, text in texts().items() if name.startswith("tests/"))
    there = set(re.findall(r"def (test_\w+)", tests))
    assert named - there == set()
    assert named


def test_every_variable_of_ours_that_is_named_is_a_setting() -> None:
    known = {
        f"HACHI_{name.upper()}" for name, field in Settings.model_fields.items() if not field.validation_alias
    }
    named = {
        (variable, name)
        for name, text in texts().items()
        if not name.startswith("tests/")
        for variable in re.findall(r"\bHACHI_[A-Z]+(?:_[A-Z]+)*\b", text)
    }
    assert {variable for variable, _ in named} >= {"HACHI_HOME", "HACHI_MODEL"}
    assert {(variable, name) for variable, name in named if variable not in known} == set()


BY_NAME = re.compile(
    r"\b(?:pip[x3]?|uv|uvx|poetry|pdm|conda)\b[^\n`]*[\s'\"=]hachi(?:[_-]companion)?(?![\w./-])"
    r"|\bhachi(?:[_-]companion)?\[|^\s*hachi(?:[_-]companion)?\s*[=~<>]=",
    re.M,
)
"""An install, or a requirement, of whatever the package index has under our name."""


def test_nothing_installs_a_project_of_the_package_index_by_our_name() -> None:
    assert PROJECT["name"] == "hachi-companion"
    ourselves = f'"{PROJECT["name"]}[postgres,discord,slack,otel]",\n'  # what `dev` adds to
    found = {
        name: seen[0]
        for name, text in texts().items()
        if (seen := BY_NAME.search(text.replace(ourselves, "")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'ha" + "chi[otel]'",
        "python -m pip install --upgrade ha" + "chi",
        "uv add ha" + "chi-companion",
        "uvx ha" + "chi chat",
        "\nha" + "chi==0.1.0\n",
    ],
)
def test_such_an_install_would_be_seen(text: str) -> None:
    assert BY_NAME.search(text)


PYPROJECT: dict[str, Any] = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]
PACKAGES: list[str] = PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]


def test_the_constraints_pin_whatever_make_installs() -> None:
    lines = (HERE / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {
        re.sub(r"[-_.]+", "-", name).lower(): number
        for name, number in (line.split("==") for line in lines if line and not line.startswith("#"))
    }
    extras = PROJECT["optional-dependencies"]
    shipped = [one for name in ("dev", "postgres", "discord", "slack") for one in extras[name]]
    for wanted in map(Requirement, [*PROJECT["dependencies"], *shipped]):
        if wanted.name != PROJECT["name"]:
            assert wanted.specifier.contains(pinned[re.sub(r"[-_.]+", "-", wanted.name).lower()]), wanted


def imported_packages() -> set[str]:
    """The top-level names of other packages that the product imports, lazily too."""
    names = set()
    for path in (
        path for root in ("hachi", "agent", "memory", "tools") for path in (HERE / root).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module or "")
    roots = {name.partition(".")[0] for name in names}
    return roots - sys.stdlib_module_names - {"hachi", "agent", "memory", "tools", "prompts"}


def test_every_imported_package_is_declared() -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {canonicalize_name(Requirement(line).name) for lines in lists for line in lines}
    declared.add(canonicalize_name("pydantic-core"))  # pydantic pins it
    providers = packages_distributions()
    missing = {
        name
        for name in imported_packages() - {"xllamacpp"}  # an extra that tests do not install
        if not declared & {canonicalize_name(provider) for provider in providers.get(name, ())}
    }
    assert missing == set()


def test_the_changelog_has_this_version() -> None:
    assert f"## {hachi.__version__}" in (HERE / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture
def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((HERE / "docker-compose.yml").read_text(encoding="utf-8"))
    return found


def test_services_that_keep_data_keep_it_in_volumes_and_are_watched(compose: dict[str, Any]) -> None:
    talking = {"hachi", "serve", "replica", "worker", "discord", "slack"}
    assert compose["services"].keys() == {"postgres", "qdrant", "migrate", "proxy"} | talking
    for name in {"postgres", "qdrant"} | talking:
        service = compose["services"][name]
        assert service["healthcheck"]["test"]
        assert {volume.split(":")[0] for volume in service["volumes"]} <= compose["volumes"].keys()


def test_no_secret_has_a_default(compose: dict[str, Any]) -> None:
    """Each is asked for where it is first needed; none is written in the file."""
    secrets = {
        name: value
        for service in compose["services"].values()
        for name, value in service.get("environment", {}).items()
        if re.search("PASSWORD|KEY|TOKEN|SECRET", name)
    }
    assert {
        "POSTGRES_PASSWORD",
        "QDRANT__SERVICE__API_KEY",
        "DISCORD_TOKEN",
        "SLACK_BOT_TOKEN",
    } <= secrets.keys()
    for value in secrets.values():
        assert re.fullmatch(r"\$\{\w+(:-|:\?[\w ,.]+)?\}", value), value
    example = (HERE / ".env.example").read_text(encoding="utf-8")
    assert all(line.endswith("=") for line in example.splitlines() if line and not line.startswith("#"))


def test_each_profile_publishes_one_port_at_most_and_for_this_machine_only(compose: dict[str, Any]) -> None:
    services = compose["services"]
    published = "${PUBLISH:-127.0.0.1:8000}"
    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "serve": [f"{published}:8000"],
        "proxy": [f"{published}:8080"],
    }
    assert not set(services["serve"]["profiles"]) & set(services["proxy"]["profiles"])
    assert not any("network_mode" in service for service in services.values())


def test_a_service_gets_the_variables_that_it_needs_and_may_change_its_data_alone(
    compose: dict[str, Any],
) -> None:
    secret = {"DISCORD_TOKEN": {"discord"}, "SLACK_BOT_TOKEN": {"slack"}, "SLACK_APP_TOKEN": {"slack"}}
    ours = {name for name, service in compose["services"].items() if "build" in service}
    secret["OPENAI_API_KEY"] = ours - {"migrate"}
    for variable, services in secret.items():
        having = {name for name, one in compose["services"].items() if variable in one.get("environment", {})}
        assert having == services
    for name, service in compose["services"].items():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["mem_limit"]
        files = [{"path": "hachi.env", "required": False}] if name in ours - {"migrate"} else []
        assert service.get("env_file", []) == files
        if name in ours:
            assert service["environment"]["HACHI_HOME"] == "/data"


def test_what_compose_is_told_is_what_hachi_understands(compose: dict[str, Any]) -> None:
    """Each surface is a profile of its own and starts by its name, with settings and options there are."""

    from agent.surfaces.cli import build

    known = build().commands  # type: ignore[attr-defined]
    variables = {
        str(field.validation_alias.choices[-1])
        for field in Settings.model_fields.values()
        if field.validation_alias
    }  # type: ignore[union-attr]
    variables |= {f"HACHI_{name.upper()}" for name in Settings.model_fields}
    example = (HERE / ".env.example").read_text(encoding="utf-8")
    for name, service in compose["services"].items():
        if "build" not in service:
            continue
        command, *options = service["command"]
        assert command in known
        taken = {option for parameter in known[command].params for option in parameter.opts}
        assert {option for option in options if option.startswith("-")} <= taken
        assert service["environment"].keys() <= variables
        if name in ("serve", "discord", "slack"):
            assert (command, service["profiles"]) == (name, [name])
        for value in map(str, [*service["environment"].values(), *service.get("ports", ())]):
            for asked in re.findall(r"\$\{(\w+)", value):
                assert f"\n{asked}=\n" in example, asked


def test_the_image_has_what_its_services_need() -> None:
    dockerfile = (HERE / "Dockerfile").read_text(encoding="utf-8")
    extras = re.search(r"'\.\[([\w,]+)\]'", dockerfile)
    assert extras is not None
    assert (
        set(extras[1].split(","))
        == {"postgres", "discord", "slack", "otel"}
        <= PROJECT["optional-dependencies"].keys()
    )
    copied = set(re.findall(r"^COPY (\w+) \1$", dockerfile, re.MULTILINE))
    packages = {name.removesuffix("*") for name in PACKAGES}
    assert copied == packages


def test_the_files_and_methods_that_docstrings_name_are_there() -> None:
    from hachi import Companion
    from tests.reference import SERVICES

    files = {Path(name).name for name in texts()} | {"discord.py"}
    missing = []
    for name, text in texts().items():
        if name.startswith(("agent/", "memory/", "hachi/", "tools/")) and name.endswith(".py"):
            said = "".join(re.findall(r'"""(.*?)"""', text, re.DOTALL))
            missing += [(name, file) for file in re.findall(r"\b\w+\.py\b", said) if file not in files]
            named = [(Companion, method) for method in re.findall(r"`Companion\.(\w+)`", said)]
            named += [(SERVICES[one], method) for one, method in re.findall(r"`pet\.(\w+)\.(\w+)", said)]
            missing += [(name, method) for holder, method in named if not hasattr(holder, method)]
    assert missing == []


def test_a_package_that_outgrows_its_budget_of_lines_is_named(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "big/story.py").write_text("once = 1\n\nupon = 2\n")
    assert over_budget(tmp_path, {"big": 3}) == []
    [line] = over_budget(tmp_path, {"big": 2})
    assert "big has 3 lines and may have 2" in line


BANNED = {
    *"found told given said one own known held lost seen alone plain kept left".split(),
    *"scene upkeep extraction draft taken".split(),
}
"""Words that name nothing: docs/architecture.md, "Words"."""
NAMED_SO = {
    "said_at": "an argument of the API, a column and a key of JSON",
    "known": "`PromptContext` and `Person` in traces",
    "found": "`Reply`, and what a job of an answer's memories and a case in a trace hold",
    "said": "`Summary` and `Provenance`, in lists of traces and in cases",
    "seen": "a key of the model's answer",
    "draft": "`Case`, in traces",
    "kept": "a key of the receipt of a forgetting",
    "left": "a key of the receipt of an erasure",
    "left_alone": "a key of /readyz",
    "given_up": "an option of `hachi jobs list`",
    "told_by": "a key of what MCP answers",
    "also_known_as": "a key of what MCP answers",
    "not_found": "the words of HTTP",
    "NotFound": "the words of HTTP",
    "is_plain_text": "a method that the Agents SDK calls",
    "plain_text": "a type of files",
    "one_line": "text on one line",
    "upkeep": "a former name that is still read",
    "upkeep_model": "a former name that is still read",
}
"""Public names that have such a word all the same, and why."""


def public_names(tree: ast.AST) -> Iterator[str]:
    """Yield the public functions and classes, their arguments and fields."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from public_names(node)
            else:
                yield from (each.arg for each in (*node.args.args, *node.args.kwonlyargs))
        elif (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(tree, ast.ClassDef)
        ):
            yield node.target.id


def badly_named(source: str) -> list[str]:
    """Return the public names with a banned word."""
    return [
        name
        for name in public_names(ast.parse(source))
        if name[0] != "_" and {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)} & BANNED
    ]


def test_public_names_are_words_of_the_glossary() -> None:
    packages = ("hachi/", "agent/", "memory/", "tools/", "prompts/")
    sources = {
        name: text for name, text in texts().items() if name.startswith(packages) and name.endswith(".py")
    }
    named = {
        f"{file}: {name}"
        for file, text in sources.items()
        for name in badly_named(text)
        if name not in NAMED_SO
    }
    assert named == set()
    assert len(BANNED) <= 25


@pytest.mark.parametrize(
    "source",
    ["class Found: ...", "def lost_value(): ...", "def show(given): ...", "class Hit:\n    seen: bool"],
)
def test_such_a_name_would_be_noticed(source: str) -> None:
    assert badly_named(source)
