"""Dask's workers as a cluster. The one importer of `distributed`.

In: the address of a scheduler. Out: a `Cluster`. Each worker process has one `BatchRunner`, kept by a plugin; batches
are tasks that Dask neither keeps nor repeats.
"""

from __future__ import annotations

import asyncio
import logging
import secrets

import dask
from dask.utils import parse_timedelta
from distributed import CancelledError, Client, Future, KilledWorker, Worker, WorkerPlugin, get_worker

from precast.worker.batch import Message
from precast.worker.cluster import ClusterLost, WorkerGone, answers
from precast.worker.runner import BatchRunner

CONNECT_SECONDS = 10.0
WORKERS_SECONDS = 60.0  # until the first worker of a cluster that is being started is there
PLUGIN = "precast"


class RunnerPlugin(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """Keeps a worker's runner for as long as the worker lives, whichever builds it serves."""

    idempotent = True
    name = PLUGIN

    def setup(self, worker: Worker) -> None:
        self.runner = BatchRunner(worker.state.nthreads)

    def teardown(self, worker: Worker) -> None:
        self.runner.close()

    def transition(self, key: str, start: str, finish: str, **_: object) -> None:
        """Dask ends no task that runs, and lets it go where the build that wanted it is gone."""
        if (start, finish) == ("executing", "released"):
            self.runner.drop(key)


def run_batch(text: str, blobs: dict[str, bytes], key: str) -> tuple[str, str, dict[str, bytes]]:
    """The batch of a task, on a worker: its address, and what it answers."""
    worker = get_worker()
    answer, made = worker.plugins[PLUGIN].runner.run((text, blobs), key)
    return worker.address, answer, dict(made)


class DaskCluster:
    """A scheduler and its workers."""

    def __init__(self, address: str, client: Client) -> None:
        self.address = address
        self._client = client
        self._patience = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
        self.slots = sum(each["nthreads"] for each in self._workers().values())

    def _workers(self) -> dict[str, dict[str, int]]:
        return dict(self._client.scheduler_info(n_workers=-1)["workers"])

    def run(self, message: Message, avoid: frozenset[str]) -> tuple[str, Message]:
        text, blobs = message
        try:
            left = [each for each in self._workers() if each not in avoid] if avoid else None
            if left == []:
                raise ClusterLost("none of its workers has the tools of this build")
            key = f"precast-{secrets.token_hex(8)}"
            task = self._client.submit(run_batch, text, dict(blobs), key, key=key, pure=False, retries=0, workers=left)
            worker, answer, made = self._wait(task)
        except KilledWorker:
            raise WorkerGone from None
        except (CancelledError, asyncio.CancelledError, OSError):
            raise ClusterLost("the connection to its scheduler is lost") from None
        except (ClusterLost, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ClusterLost(f"a worker cannot run jobs: {type(error).__name__}: {error}") from error
        return worker, (answer, made)

    def _wait(self, task: Future) -> tuple[str, str, dict[str, bytes]]:
        """What a task gives. A batch may take long: while it does, the scheduler is asked whether it is there, since a
        process that hangs keeps its connections."""
        while True:
            try:
                result: tuple[str, str, dict[str, bytes]] = task.result(timeout=self._patience)
                return result
            except (TimeoutError, asyncio.TimeoutError):
                if task.done():
                    raise
                if not answers(self._client.scheduler_info, self._patience):
                    raise ClusterLost(f"its scheduler has not answered for {self._patience:g} s") from None

    def close(self) -> None:
        self._client.close(timeout=CONNECT_SECONDS)


def connect(address: str, place: str) -> DaskCluster:
    """The cluster behind a scheduler; `ClusterLost` when it cannot be used."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it says is said in our words
    try:
        client = Client(f"tcp://{place}", timeout=CONNECT_SECONDS, set_as_default=False, name="precast")
    except (OSError, TimeoutError):
        raise ClusterLost("no scheduler answers there") from None
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        client.register_plugin(RunnerPlugin(), name=PLUGIN)
        return DaskCluster(address, client)
    except TimeoutError:
        client.close(timeout=CONNECT_SECONDS)
        raise ClusterLost("it has no workers") from None
    except Exception as error:
        client.close(timeout=CONNECT_SECONDS)
        raise ClusterLost(f"a worker cannot run jobs: {type(error).__name__}: {error}") from error
