"""At which levels of this processor a test runs: in the first tier at the highest, in the second at the others too."""

import pytest
from cpu_harness import LEVELS

EVERY_LEVEL = [*(pytest.param(level, marks=pytest.mark.all) for level in LEVELS[:-1]), LEVELS[-1]]
