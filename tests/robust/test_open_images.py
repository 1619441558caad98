"""An image with its digest right that says it has what it has not: no driver gets it, which would believe it."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
from open_setup import TESTS, build_runtime, launch_release
from wrong_images import damaged, with_segment

sys.path.insert(0, str(TESTS / "build"))
from plugin_tree import PluginTree

from precast.worker.pool import WorkerPool


@pytest.fixture(scope="module")
def runtime() -> ctypes.CDLL:
    return build_runtime()


def is_whole(runtime: ctypes.CDLL, image: bytes) -> bool:
    exact = ctypes.create_string_buffer(image, len(image))
    return bool(runtime.precast_elf_is_whole(exact, ctypes.c_size_t(len(image))))


def test_what_is_not_there_is_not_believed(runtime: ctypes.CDLL) -> None:
    plain = launch_release.wrap_image(b"fake one 8,8")
    image = with_segment(plain)
    assert is_whole(runtime, plain) and is_whole(runtime, image)
    assert is_whole(runtime, image + b"more")
    for size in range(len(image)):
        assert not is_whole(runtime, image[:size]), size
    for what, changed in damaged(image):
        assert not is_whole(runtime, changed), what


@pytest.mark.all
def test_images_of_compilers_are_whole(runtime: ctypes.CDLL, tmp_path: Path) -> None:
    targets = ("cuda:90", "cuda:80", "hip:gfx942", "hip:gfx1100")
    tree = PluginTree(tmp_path / "p", targets)
    with WorkerPool(1) as pool:
        for target in targets:
            job = tree.job("scale", target)
            pool.submit(job).result()
            image = (Path(job.output) / f"scale.{job.unit.stages[-1]}").read_bytes()
            assert is_whole(runtime, image) and not is_whole(runtime, image[:-1]), target
