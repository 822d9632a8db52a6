"""Run the command without what its start need not load: 0.4 of 2 s until the first answer."""

import gc
import os
import sys
from importlib.util import find_spec, module_from_spec
from typing import Any


def run() -> int:
    """Run the command and return its exit code."""
    start_quickly()
    from agent.surfaces.cli import main

    code = main()
    gc.freeze()  # Python would look through all objects once more before it ends: 0.25 s
    return code


def start_quickly() -> None:
    """Make the imports that follow shorter. The libraries stay as they are."""
    gc.set_threshold(50_000)  # with Python's 700 a tenth of the start is spent on looking through imports
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # none is looked for in every package
    defer("mcp")  # the Agents SDK needs one exception of it, and the package loads its client and server


def defer(name: str) -> None:
    """Run the `__init__` of a package when one of its names is first used, and not when one of its modules is
    imported."""
    spec = find_spec(name)
    if spec is None or spec.loader is None or name in sys.modules:
        return
    package, loader = module_from_spec(spec), spec.loader

    def load(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        vars(package).pop("__getattr__", None)
        loader.exec_module(package)
        return getattr(package, attribute)

    vars(package)["__getattr__"] = load
    sys.modules[name] = package
