"""Content digests of files, remembered by what the file system says of them.

In: paths. Out: sha256 hex, and records that were made from a content and are kept under its digest. What is
remembered lives in one JSON file of the build folder; losing it costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

FORMAT = 1
# A file written this short a time ago may be written again within one tick of the clock: it is not remembered.
SETTLING_NS = 1_000_000_000


def digest_text(text: str) -> str:
    """sha256 hex of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def digest_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """One digest over names and their digests, in the order given."""
    return digest_text("".join(f"{name}\0{digest}\n" for name, digest in pairs))


class FileDigests:
    """Digests of files; `memory` is the JSON file that remembers them between runs, None to remember nothing."""

    def __init__(self, memory: Path | None = None) -> None:
        self._memory = memory
        self._files: dict[str, list[Any]] = {}
        self._records: dict[str, Any] = {}
        self._used: set[str] = set()
        self._changed = False
        self._read()

    def _read(self) -> None:
        if self._memory is None:
            return
        try:
            data = json.loads(self._memory.read_bytes())
            if data["format"] == FORMAT:
                self._files, self._records = dict(data["files"]), dict(data["records"])
        except (OSError, ValueError, KeyError, TypeError):
            return  # absent or damaged: everything is digested anew

    def digest(self, path: Path) -> str:
        """sha256 hex of the file's content; `OSError` when it cannot be read."""
        status = path.stat()
        name = str(path)
        state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        known = self._files.get(name)
        self._used.add(name)
        if known is not None and known[:4] == state:
            return str(known[4])
        with path.open("rb") as stream:
            digest = _digest_stream(stream)
        if time.time_ns() - status.st_mtime_ns > SETTLING_NS:
            self._files[name] = [*state, digest]
            self._changed = True
        return digest

    def record(self, kind: str, path: Path, make: Callable[[bytes], Any]) -> Any:
        """What `make` makes of the file's bytes (JSON-able), remembered under the content's digest."""
        key = f"{kind}:{self.digest(path)}"
        self._used.add(key)
        if key not in self._records:
            self._records[key] = make(path.read_bytes())
            self._changed = True
        return self._records[key]

    def save(self) -> None:
        """Writes what was used in this run to the memory. A folder that cannot be written is no error."""
        if self._memory is None or not self._changed:
            return
        data = {
            "format": FORMAT,
            "files": {name: state for name, state in self._files.items() if name in self._used},
            "records": {key: value for key, value in self._records.items() if key in self._used},
        }
        with contextlib.suppress(OSError):
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            draft = self._memory.with_name(f".{self._memory.name}.{secrets.token_hex(6)}")
            draft.write_text(json.dumps(data, separators=(",", ":")))
            os.replace(draft, self._memory)
        self._changed = False


def _digest_stream(stream: Any) -> str:
    total = hashlib.sha256()
    while block := stream.read(1 << 20):
        total.update(block)
    return total.hexdigest()
