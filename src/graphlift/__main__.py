"""``python -m graphlift``."""

import sys

from graphlift.cli import main

if __name__ == "__main__":
    sys.exit(main())
