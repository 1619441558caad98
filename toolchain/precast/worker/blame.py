"""A worker that was lost while an outside pass ran: told as the pass's, at the line where it was.

In: the failure, and the last words of the process, to which Python's fault handler wrote what was running. Out: the
failure in the pass's name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from precast.errors import Place
from precast.job import Job
from precast.passes.resources import resolve_resource
from precast.passes.selection import PassUse
from precast.worker.failures import Failure

HOOK_FOLDER = "/precast-hook-"  # a hook file runs as a copy in such a folder

_THREAD = re.compile(r"^(?:Current t|T)hread 0x", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)


def blame_pass(failure: Failure, words: str, job: Job, pass_name: str) -> Failure:
    """`failure` as the pass's, where one was running; as it is where none was, or where it is native: a library's code
    and the compiler's crash alike."""
    use = next((each for each in job.passes if each.name == pass_name), None)
    if use is None or use.kind == "native":
        return failure
    message = failure.message.replace("the compiler", "the pass", 1)
    return replace(failure, message=message, where=find_last_line(words, use, Path(job.project)) or failure.where)


def find_last_line(words: str, use: PassUse, project: Path) -> Place | None:
    """The innermost line of the pass's files in the last stack that the fault handler wrote, of any thread."""
    stacks = words[words.rfind("Timeout (") + 1 :] if "Timeout (" in words else words
    known = {str(resolve_resource(name, project)): name for name in use.files if ":" not in name}
    copies = {Path(name).name: name for name in use.files} if use.kind == "hook" else {}
    for stack in _THREAD.split(stacks)[1:]:
        for path, line in _FRAME.findall(stack):
            name = known.get(path) or (copies.get(Path(path).name) if HOOK_FOLDER in path else None)
            if name:
                return Place(name, int(line))
    return None
