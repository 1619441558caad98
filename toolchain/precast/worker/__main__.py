"""`python -m precast.worker REQUESTS EVENTS PARENT ENGINE`: descriptors of the two pipes, process id of the parent,
name of the engine that the first job will want."""

from __future__ import annotations

import os
import sys

from precast.worker.child import serve
from precast.worker.lifeline import be_first_to_go, die_with_parent


def main() -> None:
    requests, events, parent = (int(word) for word in sys.argv[1:4])
    die_with_parent(parent)
    be_first_to_go()
    os.set_inheritable(requests, False)
    os.set_inheritable(events, False)
    with os.fdopen(requests, "rb") as stream:
        serve(stream, events, sys.argv[4])


if __name__ == "__main__":
    main()
