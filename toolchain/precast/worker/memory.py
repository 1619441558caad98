"""How much memory there is and how much a worker uses. In: /proc and the control group. Out: bytes, counts."""

from __future__ import annotations

import os
import re
from pathlib import Path

from precast.worker.descendants import tree_of

WORKER_BYTES = 700 << 20  # a warm worker with room for a large kernel and its assembler
_PAGE = os.sysconf("SC_PAGE_SIZE")


def tree_bytes(process: int) -> int:
    """Resident memory of a process and of all that it started; what they share counts once for each."""
    return sum(_resident(each) for each in tree_of(process))


def _resident(process: int) -> int:
    fields = _read(Path(f"/proc/{process}/statm")).split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def available_bytes() -> int:
    """Memory that can still be used: by the machine's count, or by the control group's where that is less."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", _read(Path("/proc/meminfo")), re.MULTILINE)
    found = int(match[1]) << 10 if match else 1 << 62
    limit, used = (_read(Path(f"/sys/fs/cgroup/memory.{name}")).strip() for name in ("max", "current"))
    return min(found, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else found


def available_cores() -> int:
    """Cores that this process may use, at least 1: its affinity, or the control group's share where that is less."""
    cores = len(os.sched_getaffinity(0))
    quota = _read(Path("/sys/fs/cgroup/cpu.max")).split()
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, -(-int(quota[0]) // int(quota[1])))
    return max(1, cores)


def default_worker_count() -> int:
    """Workers for this machine: one a core, unless memory is too little for so many."""
    return max(1, min(available_cores(), available_bytes() // WORKER_BYTES))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
