"""The command `hachi`."""

import sys

from hachi import check_neighbours


def main() -> int:
    try:
        check_neighbours()
    except ImportError as error:
        print(error, file=sys.stderr)
        return 1
    from agent.surfaces.start import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
