"""What tests of builds share: a worker to run units in."""

from collections.abc import Iterator

import pytest

from precast.worker.pool import WorkerPool


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(1) as pool:
        yield pool
