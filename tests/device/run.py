"""The device kit's one script: every check and every figure on this machine's GPU, as one JSON file.

Usage: run.py [OUT.json], from the kit's folder. Needs torch; CuPy and JAX are used where they are. Each part runs in a
process of its own, so that one that dies hides no other. tests/device/take_results.py stores the file's contents.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KIT = Path(__file__).resolve().parent
PARTS = {
    "runtime": ["check_runtime.py", "{kit}", "{out}"],
    "kernels": ["check_kernels.py", "{kit}", "{out}"],
    "launch": ["bench/launch.py", "{kit}/bench_release", "--out", "{out}"],
}
TIME_LIMIT_S = 240


def run_part(words: list[str], out: Path) -> dict[str, object]:
    """The part's JSON with its exit code, seconds and the end of what it printed."""
    command = [sys.executable, str(KIT / words[0]), *(word.format(kit=KIT, out=out) for word in words[1:])]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)
        code, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        code, text = -1, str(expired.stdout or "")
    result = json.loads(out.read_text()) if out.exists() else None
    return {"code": code, "seconds": round(time.monotonic() - start, 1), "output": text[-6000:], "result": result}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        parts = {name: run_part(words, Path(folder) / f"{name}.json") for name, words in PARTS.items()}
    Path(sys.argv[1] if len(sys.argv) > 1 else "device.json").write_text(json.dumps(parts, indent=1) + "\n")
    for name, part in parts.items():
        print(f"== {name}: exit code {part['code']} after {part['seconds']} s\n{part['output']}")
    return 0 if all(part["code"] == 0 for part in parts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
