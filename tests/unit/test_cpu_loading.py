"""The CPU engine's objects in memory, loaded by several threads at once."""

import ctypes
import functools
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("llvmlite")

from precast.engines import cpu
from precast.engines.cpu import loading

THREADS = 8


def make_object(number: int) -> bytes:
    return cpu.emit_object(f"define i32 @seven() {{\n  ret i32 {number}\n}}\n", "x86-64-v2", "seven")


def call(loaded: loading.LoadedObject) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int32)(loaded.entry)()


def load_at_once(image: bytes) -> list[loading.LoadedObject]:
    start = threading.Barrier(THREADS)

    def load(_: int) -> loading.LoadedObject:
        start.wait()
        return loading.load_object(image, "seven")

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(load, range(THREADS)))


def test_threads_load_with_one_linker(monkeypatch):
    """The code of a second linker, which nobody keeps, would be unmapped while it runs."""
    made, create = [], loading.llvm.create_lljit_compiler

    def create_slowly():
        time.sleep(0.2)
        made.append(create())
        return made[-1]

    monkeypatch.setattr(loading.llvm, "create_lljit_compiler", create_slowly)
    monkeypatch.setattr(loading, "_linker", functools.cache(loading._linker.__wrapped__))
    found = load_at_once(make_object(7))
    assert len(made) == 1
    assert [call(each) for each in found] == [7] * THREADS


def test_what_a_thread_has_loaded_outlives_that_another_forgets_it():
    found = load_at_once(make_object(8))
    assert len({each.entry for each in found}) == 1
    kept = found.pop()
    del found
    gc.collect()
    assert call(kept) == 8
    assert loading.load_object(make_object(8), "seven") is kept


def test_other_objects_of_the_same_name_are_others():
    first, second = (loading.load_object(make_object(number), "seven") for number in (1, 2))
    assert (call(first), call(second)) == (1, 2)


def test_what_nobody_has_is_loaded_anew():
    image = make_object(9)
    loading.load_object(image, "seven")
    gc.collect()
    assert not [key for key in loading._LOADED if key[0] == image]
    assert call(loading.load_object(image, "seven")) == 9
