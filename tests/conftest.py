"""What every tier shares: `--update`, which writes expected texts anew, a C compiler, PyTorch, and other Tritons."""

import compileall
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

# A busy machine makes generation slow, which says nothing of the code. The seed is fixed: a failure comes again.
hypothesis.settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")

OTHER_TRITONS = ("3.6.0", "3.7.0", "3.8.0")
UNREACHABLE = ("connection", "name resolution", "timed out", "proxyerror", "network is unreachable")


KEPT_CC = "PRECAST_TEST_CC"  # where tests find the compiler of this run
SCONSTRUCT = """
import precast

env = Environment(tools=["default", "precast_tool"], toolpath=[precast.scons_toolpath], CC="{compiler}")
env.Precast()
"""


def pytest_configure(config: pytest.Config) -> None:
    """Makes the run's C compiler, which keeps its objects, and bytecode of what its many processes import, also where
    Python is told to write none. Processes that share the work inherit both.

    A shell starts what runs in the background deaf to interrupts, and so would be what tests start.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if KEPT_CC not in os.environ:
        compileall.compile_dir(Path(__file__).parents[1] / "toolchain" / "precast", quiet=2)
        folder = Path(tempfile.mkdtemp(prefix="precast-test-cc-"))
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
        words = ["cc", "-O1", "-std=c11", "-D_GNU_SOURCE", Path(__file__).with_name("kept_cc.c"), "-o", folder / "cc"]
        subprocess.run(words, check=True)
        os.environ[KEPT_CC] = str(folder / "cc")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite expected texts instead of comparing them")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether expected texts are to be written anew."""
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def sconstruct() -> str:
    """For projects whose C is not what a test is about: most of a small build's time is C that all have alike."""
    return SCONSTRUCT.format(compiler=os.environ[KEPT_CC])


def import_interop(module: str, name: str) -> ModuleType:
    """A package of the extra `interop`. Without it a test is skipped; in the second tier, which installs it, the test
    fails."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        absent = pytest.fail if os.environ.get("PRECAST_INTEROP") else pytest.skip
        absent(f"it takes {name}: pip install 'precast[interop]' ({error})")


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """PyTorch."""
    return import_interop("torch", "PyTorch")


@pytest.fixture(scope="session")
def dask() -> ModuleType:
    """Dask's scheduler and workers."""
    return import_interop("distributed", "Dask")


@pytest.fixture(scope="session")
def ray() -> ModuleType:
    """Ray."""
    return import_interop("ray", "Ray")


@pytest.fixture(scope="session")
def moto() -> ModuleType:
    """A server that speaks S3, with what asks it."""
    import_interop("s3fs", "an S3 server")
    return import_interop("moto.server", "an S3 server")


@pytest.fixture(scope="session")
def google_store() -> ModuleType:
    """A server that speaks as Google's store does, with what asks it."""
    import_interop("gcsfs", "a server")
    return import_interop("gcp_storage_emulator.server", "a server")


@pytest.fixture(params=OTHER_TRITONS)
def other_triton(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Another Triton in a folder of its own, which is removed again: it is large."""
    folder = tmp_path / "triton"
    words = ["pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", folder]
    command = [sys.executable, "-m", *map(str, words), f"triton=={request.param}"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode and any(word in done.stderr.lower() for word in UNREACHABLE):
        pytest.skip("the package index cannot be reached, so there is no other Triton to run under")
    assert done.returncode == 0, done.stderr
    yield request.param, folder
    shutil.rmtree(folder)
