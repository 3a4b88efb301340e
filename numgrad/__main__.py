"""``python -m numgrad``."""

import sys

from numgrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
