"""Releases for the tests of this folder, each built once."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from launch_release import build_fakes, build_release


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fakes(tmp_path_factory.mktemp("fakes"))


@pytest.fixture(scope="session")
def small(release: Path) -> ModuleType:
    sys.path.insert(0, str(release / "python"))
    try:
        return importlib.import_module("small")
    finally:
        sys.path.remove(str(release / "python"))


def aligned(count: int, dtype: str = "float32", offset: int = 0) -> np.ndarray:
    """An array that starts `offset` elements after a multiple of 64 bytes."""
    size = np.dtype(dtype).itemsize
    store = np.zeros(count + offset + 64, dtype)
    start = -store.ctypes.data % 64 // size + offset
    return store[start : start + count]


@pytest.fixture
def x() -> np.ndarray:
    values = aligned(1000)
    values[:] = np.arange(1000)
    return values
