import subprocess
import sys

SCRIPT = """
from agent.surfaces.start import start_quickly
start_quickly()
import sys, agents, agent.turn.turn
print(sorted({"mcp.client", "sqlalchemy.orm", "agents.repl", "openai.types.batch"} & set(sys.modules)))
import mcp, openai, sqlalchemy.ext.asyncio as sa
print(mcp.Client, mcp.types.Tool, agents.SQLiteSession, openai.types.Batch, sa.AsyncSession)
print(agents.__version__[0], hasattr(agents, "nothing"), hasattr(mcp, "__wrapped__"))
from agents import *
print(Runner.__name__)
"""


def test_the_names_of_large_packages_are_loaded_when_they_are_used():
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    loaded, names, *rest = ran.stdout.splitlines()
    assert (loaded, names.count("<class"), rest) == ("[]", 5, ["0 False False", "Runner"])
