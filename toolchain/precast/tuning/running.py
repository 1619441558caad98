"""A tuning run: every kernel of a candidates release that has problems, on one device.

In: the release's package and its table of problems, a folder for evidence. Out: evidence files, and what is told on the
way. What is measured is written down problem by problem, so that a run that was stopped goes on where it stopped. Goes
into candidates.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from precast.tuning.devices import Device, DeviceFault, Host
from precast.tuning.evidence import SCHEMA, UNFINISHED, evidence_name, problem_key, render_evidence, sort_problems
from precast.tuning.gpus import open_gpu
from precast.tuning.measuring import Method, NoRoom, format_config, measure_problem

Tell = Callable[[str], None]
KINDS = ("cuda", "hip", "cpu")


def tune_release(
    package: Any, table: Mapping[str, Any], folder: Path, method: Method, kernels: str, tell: Tell, kind: str = ""
) -> list[Path]:
    """Measures all problems that the device has units for; the evidence files. `DeviceFault` where there is none.

    `package` is the release's Python package, `table` its `tuning.json`, `kind` that of the device; "" for the first
    that units are for and that is here.
    """
    targets = {target for each in table["kernels"].values() for target in each["targets"]}
    device = _open(targets, kind)
    fitting = {
        unit["target"] for unit in package.query() if unit["target"].startswith(f"{device.kind}:") and unit["fits"]
    }
    jobs = [
        (name, about, _best_target(about["targets"], fitting))
        for name, about in sorted(table["kernels"].items())
        if fnmatchcase(name, kernels)
    ]
    run = _Run(package, device, folder, method, tell, table["precast"])
    run.count(about["targets"][target] for _, about, target in jobs if target)
    tuned = (run.tune(name, about, target) for name, about, target in jobs if target)
    return [path for path in tuned if path is not None]


def _open(targets: set[str], kind: str) -> Device:
    faults = []
    for each in [kind] if kind else KINDS:
        if any(target.startswith(f"{each}:") for target in targets):
            try:
                return Host() if each == "cpu" else open_gpu(each)
            except DeviceFault as fault:
                faults.append(str(fault))
    words = ", ".join(sorted(targets)) or "nothing"
    raise DeviceFault("; ".join(faults) or f"the candidates have problems for {words}, and not for {kind or 'this'}")


def _best_target(targets: Mapping[str, Any], fitting: set[str]) -> str:
    """Of the targets whose units run here the newest; "" for none."""
    return max((each for each in targets if each in fitting), key=lambda each: (len(each), each), default="")


class _Run:
    """What all kernels of a run share."""

    def __init__(self, package: Any, device: Device, folder: Path, method: Method, tell: Tell, version: str) -> None:
        self._package = package
        self._device = device
        self._folder = folder
        self._method = method
        self._tell = tell
        self._versions = {"numpy": np.__version__, "precast": version, "python": platform.python_version()}
        self._told: set[str] = set()
        self._cells = self._done = self._timed = self._spent = 0.0

    def count(self, tables: Iterable[Mapping[str, Any]]) -> None:
        """Notes how much there is to measure."""
        self._cells = sum(len(each["problems"]) * len(each["configs"]) for each in tables)

    def tune(self, name: str, about: Mapping[str, Any], target: str) -> Path | None:
        """Measures one kernel; its evidence file, None where the device had no room for any problem."""
        table = about["targets"][target]
        head = self._head(name, about, target)
        path = self._folder / evidence_name(name, self._device.name)
        known = {problem_key(each): each for each in _read_unfinished(path, head)}
        kernel = self._package.release.kernel(name)
        for number, problem in enumerate(table["problems"], 1):
            if problem_key(problem) not in known:
                measured = self._measure(name, kernel, problem, table["configs"])
                if measured is not None:
                    known[problem_key(problem)] = measured
                    self._tell_faults(name, table["configs"], measured)
                    _write(_unfinished(path), {**head, "problems": sort_problems(list(known.values()))})
            self._done += len(table["configs"])
            self._tell(f"{name}: {number} of {len(table['problems'])} problems{self._left()}")
        if not known:
            return None
        _write(path, {**head, "problems": sort_problems(list(known.values()))})
        _unfinished(path).unlink(missing_ok=True)
        return path

    def _measure(self, name: str, kernel: Any, problem: Mapping[str, Any], configs: Any) -> dict[str, Any] | None:
        """What the evidence has of a problem; None of one that the device has no room for, which is told."""
        start = time.monotonic()
        try:
            times, faults = measure_problem(self._device, kernel, problem, configs, self._method)
        except NoRoom as fault:
            given = format_config({**problem["axes"], **problem["sizes"]})
            self._tell(f"{name}: left out, for the device has no room for {given}: {fault}")
            return None
        self._spent += time.monotonic() - start
        self._timed += len(configs)
        found = {"axes": problem["axes"], "sizes": problem["sizes"], "times": times}
        return {**found, "faults": faults} if faults else found

    def _tell_faults(self, name: str, configs: Any, measured: Mapping[str, Any]) -> None:
        """Says, once for each reason, which configs have no time."""
        for number, reason in measured.get("faults", {}).items():
            sentence = f"{name}: no time for {format_config(configs[int(number)])}: {reason}"
            if sentence not in self._told:
                self._told.add(sentence)
                self._tell(sentence)

    def _left(self) -> str:
        """How long the rest will take, as far as it went until now."""
        if not self._timed or self._done >= self._cells:
            return ""
        seconds = round(self._spent / self._timed * (self._cells - self._done))
        return f"; {seconds // 60}:{seconds % 60:02} left"

    def _head(self, name: str, about: Mapping[str, Any], target: str) -> dict[str, Any]:
        device, table, cache = self._device, about["targets"][target], self._method.cache
        return {
            "axes": about["axes"],
            "configs": table["configs"],
            "device": device.name,
            "driver": device.driver,
            "kernel": name,
            "method": {
                "cache": cache, "rounds": self._method.rounds, "timer": device.timers[cache], "unit": "us",
            },
            "schema": SCHEMA,
            "ships": table["ships"],
            "source": about["source"],
            "target": target,
            "versions": self._versions,
        }  # fmt: skip


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + UNFINISHED)


def _read_unfinished(path: Path, head: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The problems that a run like this one measured before it was stopped."""
    try:
        data = json.loads(_unfinished(path).read_text(encoding="utf-8"))
        problems: list[dict[str, Any]] = data.pop("problems")
        is_known = data == json.loads(json.dumps(head)) and all(map(problem_key, problems))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []  # absent or damaged
    return problems if is_known else []


def _write(path: Path, data: Mapping[str, Any]) -> None:
    """By rename, so that a file is whole whenever the run ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(render_evidence(data), encoding="utf-8")
    os.replace(draft, path)
