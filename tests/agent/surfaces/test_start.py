import subprocess
import sys

SCRIPT = """
import sys
from agent.surfaces.start import start_quickly
start_quickly()
import agents
print(sorted({"mcp.client", "mcp.server", "mcp.types"} & set(sys.modules)))
import agents.mcp.server, mcp
print(mcp.Client.__name__, mcp.types.Tool.__name__)
"""


def test_the_mcp_library_is_loaded_when_its_names_are_used():
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\nClient Tool\n"
