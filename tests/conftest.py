"""What every tier shares: `--update`, which writes the expected texts of golden and failing tests anew, and PyTorch."""

import importlib
import os
from types import ModuleType

import hypothesis
import pytest

# A busy machine makes generation slow, which says nothing of the code. The seed is fixed: a failure comes again.
hypothesis.settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite expected texts instead of comparing them")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether expected texts are to be written anew."""
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """PyTorch. Without it a test is skipped; in the second tier, which installs it, the test fails."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        absent = pytest.fail if os.environ.get("PRECAST_INTEROP") else pytest.skip
        absent(f"it takes PyTorch: pip install 'precast[interop]' ({error})")
