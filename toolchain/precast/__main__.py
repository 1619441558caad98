"""`python -m precast`, for where the console script is not on the path."""

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working directory, where anybody's modules may lie

    from precast.cli import main

    sys.exit(main())
