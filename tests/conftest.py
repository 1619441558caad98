"""Options that every tier shares: `--update` writes the expected texts of golden and failing tests anew."""

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
