"""`python -m agent.surfaces.cli` is the command `hachi`."""

import sys

from agent.surfaces.cli import main

sys.exit(main())
