"""`python -m precast`, for where the console script is not on the path."""

import sys

from precast.cli import main

if __name__ == "__main__":
    sys.exit(main())
