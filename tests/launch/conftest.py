"""Releases for the tests of this folder, each built once."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch_release import build_fakes, build_release

SANITIZERS = {
    "address": ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": ("-g", "-fsanitize=thread"),
}


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fakes(tmp_path_factory.mktemp("fakes"))
