"""Runs as an interpreter starts, before its program: takes itself away again, and begins to record.

In: the variable that names the folder of notes. Out: nothing that the program could see; a `sitecustomize` of the
user's own runs as ever.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


class PrecastFinder:
    """Finds Precast where it is installed for the command, in an interpreter that has it not."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [ROOT]) if name == "precast" else None


def run_the_next() -> None:
    """Imports the `sitecustomize` that would have been found without this one, if there is any."""
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != HERE]
    own = sys.modules.pop(__name__)
    try:
        import_module(__name__)
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


if __name__ == "sitecustomize":
    try:
        sys.meta_path.append(PrecastFinder)
        from precast.recording.begin import begin

        begin()
    finally:
        run_the_next()
