"""A tuning run goes on whatever a config or a problem does, and says what has no time and why."""

import ctypes
import json
from types import SimpleNamespace

import numpy as np
import pytest

from precast.tuning import running
from precast.tuning.devices import DeviceFault, Host
from precast.tuning.measuring import Method

FAULTS = {
    128: RuntimeError("it needs 300000 bytes of shared memory, and the device has 232448"),
    256: TypeError("axis `BLOCK` of `add` has no value 256"),
    512: RuntimeError("cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)"),
}


def add(x, out, n, BLOCK, stream):
    """As a kernel of a release: launches, or refuses."""
    if BLOCK in FAULTS:
        raise FAULTS[BLOCK]
    values = np.ctypeslib.as_array(ctypes.cast(x, ctypes.POINTER(ctypes.c_float)), (n,))
    np.ctypeslib.as_array(ctypes.cast(out, ctypes.POINTER(ctypes.c_float)), (n,))[:] = values + (BLOCK == 1024)


class Small(Host):
    """A processor with room for little."""

    def allocate(self, data):
        if len(data) > 4000:
            raise DeviceFault("cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)")
        return super().allocate(data)


class Frail(Host):
    """One that a launch may break."""

    def read(self, address, size):
        raise DeviceFault("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)")


def make_table(*sizes):
    problems = [
        {"axes": {}, "sizes": {"n": n}, "arguments": {"x": {"type": "fp32", "elements": n},
                                                      "out": {"type": "fp32", "elements": n}, "n": {"value": n}}}
        for n in sizes
    ]  # fmt: skip
    configs = [{"BLOCK": block} for block in (128, 64, 256, 512, 1024)]
    targets = {"cpu:x86-64-v3": {"configs": configs, "problems": problems, "ships": []}}
    return {"precast": "0", "kernels": {"add": {"axes": ["BLOCK"], "source": "0" * 64, "targets": targets}}}


def tune(monkeypatch, folder, device, *sizes):
    monkeypatch.setattr(running, "Host", device)
    package = SimpleNamespace(
        query=lambda: [{"target": "cpu:x86-64-v3", "fits": True}], release=SimpleNamespace(kernel=lambda name: add)
    )
    told: list[str] = []
    paths = running.tune_release(package, make_table(*sizes), folder, Method(1, sample_s=1e-5), "*", told.append)
    return [json.loads(path.read_text()) for path in paths], told


def test_configs_that_do_not_run_have_no_time_and_a_reason_that_is_said_once(monkeypatch, tmp_path):
    (evidence,), told = tune(monkeypatch, tmp_path, Host, 100, 200)
    assert [[time is not None for time in each["times"]] for each in evidence["problems"]] == [
        [False, True, False, False, False]
    ] * 2
    assert {each: evidence["problems"][0]["faults"][each] for each in "023"} == {
        number: str(FAULTS[block]) for number, block in (("0", 128), ("2", 256), ("3", 512))
    }
    assert told[:3] == [f"add: no time for BLOCK={block}: {FAULTS[block]}" for block in (128, 256, 512)]
    assert told[3].startswith("add: no time for BLOCK=1024: another result than the author's: ")
    assert told[4].startswith("add: 1 of 2 problems") and told[-1] == "add: 2 of 2 problems"


def test_a_problem_that_has_no_room_is_left_out(monkeypatch, tmp_path):
    (evidence,), told = tune(monkeypatch, tmp_path, Small, 2000, 100)
    assert [each["sizes"] for each in evidence["problems"]] == [{"n": 100}]
    assert told[0] == (
        "add: left out, for the device has no room for n=2000: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)"
    )
    assert tune(monkeypatch, tmp_path / "none", Small, 2000)[0] == [] and not list(tmp_path.glob("none/*.json"))


def test_a_device_that_breaks_ends_the_run_and_names_the_config(monkeypatch, tmp_path):
    with pytest.raises(DeviceFault, match=r"^while BLOCK=64 ran: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"):
        tune(monkeypatch, tmp_path, Frail, 100)
