"""`python -m precast.worker REQUESTS EVENTS PARENT ENGINE`: descriptors of the two pipes, process id of the parent,
name of the engine that the first job will want."""

from __future__ import annotations

import os
import sys

from precast.worker.lifeline import go_below_a_keeper


def main() -> None:
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working directory, where kernels and compilers write
    requests, events, parent = (int(word) for word in sys.argv[1:4])
    os.set_inheritable(requests, False)
    os.set_inheritable(events, False)
    go_below_a_keeper(parent, (requests, events))

    from precast.worker.child import serve  # what only the worker needs, the keeper does not hold

    serve(requests, events, sys.argv[4])


if __name__ == "__main__":
    main()
