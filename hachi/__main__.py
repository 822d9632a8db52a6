"""The command `hachi`."""

import gc
import sys

from hachi import check_neighbours


def main() -> int:
    gc.set_threshold(50_000)  # with Python's 700 a tenth of the start is spent on looking through imports
    try:
        check_neighbours()
    except ImportError as error:
        print(error, file=sys.stderr)
        return 1
    from agent.surfaces.cli import main as command

    code = command()
    gc.freeze()  # Python would look through all objects once more before it ends: 0.25 s
    return code


if __name__ == "__main__":
    sys.exit(main())
