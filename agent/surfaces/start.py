"""Run the command without loading or examining what its start does not need."""

import ast
import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

NAMES_ON_USE = frozenset(
    {
        "agents",
        "agents.sandbox",
        "agents.sandbox.capabilities",
        "agents.sandbox.capabilities.tools",
        "agents.sandbox.entries",
        "agents.sandbox.entries.mounts",
        "agents.sandbox.entries.mounts.providers",
        "agents.sandbox.memory",
        "agents.sandbox.session",
        "agents.testing",
        "griffe",
        "mcp",
        "openai.lib",
        "openai.types",
        "openai.types.chat",
        "openai.types.responses",
        "pydantic_settings.sources",
        "pydantic_settings.sources.providers",
        "rapidfuzz",
        "rapidfuzz.distance",
        "sqlalchemy.ext.asyncio",  # as a whole it loads the ORM
    }
)
"""Packages whose `__init__` imports far more modules than we use."""


def run() -> NoReturn:
    """Run the command and end the process with its exit code."""
    start_quickly()
    from agent.surfaces.cli import main

    code = main()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)  # Python would first take apart all that it has loaded: a tenth of a short command


def start_quickly() -> None:
    """Make the imports that follow faster, without changing the libraries."""
    gc.disable()  # imports make no garbage, and looking for it takes a seventh of the start
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # no search of each package for plugins
    sys.meta_path.insert(0, _Finder())


def collect_garbage() -> None:
    """Begin to collect garbage, except in what the start has loaded."""
    gc.set_threshold(50_000)
    gc.freeze()
    gc.enable()


class _Finder:
    """Find the packages of NAMES_ON_USE."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in NAMES_ON_USE else None
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _NamesOnUse(name, spec.loader.path)
        return spec


class _NamesOnUse(SourceFileLoader):
    """Import each name of a package from the module that defines it, when the name is first used. The
    first use of a name that the `__init__` itself defines runs all of it."""

    def exec_module(self, package: ModuleType) -> None:
        source = self.get_source(self.name) or ""
        homes = {
            alias.asname or alias.name: ("." * line.level + line.module, alias.name)
            for line in ast.parse(source).body
            if isinstance(line, ast.ImportFrom) and line.module not in (None, self.name)
            for alias in line.names
        }

        def load(attribute: str) -> Any:
            if attribute in homes:
                module, original = homes[attribute]
                value = getattr(import_module(module, self.name), original)
            elif find_spec(f"{self.name}.{attribute}"):
                return import_module(f"{self.name}.{attribute}")
            elif attribute not in source:
                raise AttributeError(f"module {self.name!r} has no attribute {attribute!r}")
            else:
                vars(package).pop("__getattr__", None)
                super(_NamesOnUse, self).exec_module(package)
                value = getattr(package, attribute)
            setattr(package, attribute, value)
            return value

        vars(package)["__getattr__"] = load
