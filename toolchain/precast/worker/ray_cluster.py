"""Ray's nodes as a cluster. The one importer of `ray`.

In: the address of a Ray head's client server. Out: a `Cluster`. Each processor of the cluster has one actor, a
`BatchRunner` with one worker process, for as long as the build lasts.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections import deque
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError

from precast.worker.batch import Message
from precast.worker.cluster import ClusterLost, WorkerGone, answers
from precast.worker.runner import BatchRunner

MOST_RESTARTS = 3
PATIENCE_SECONDS = 30.0  # with a batch, and then with a question
CONNECT_TRIES = 3  # a head gives what it starts for each build half a minute, which is little where much runs


class RayCluster:
    """A head and its nodes."""

    def __init__(self, address: str, slots: int) -> None:
        self.address = address
        self.slots = slots
        actor = ray.remote(num_cpus=1, max_restarts=MOST_RESTARTS)(BatchRunner)
        self._actors = {str(number): actor.remote(1) for number in range(slots)}
        self._idle: deque[str] = deque([*self._actors] * 2)  # each may have a batch that waits beside the one it runs
        self._changed = threading.Condition()

    def run(self, message: Message, avoid: frozenset[str]) -> tuple[str, Message]:
        name = self._take(avoid)
        try:
            text, blobs = message
            answer, made = self._wait(self._actors[name].run.remote((text, dict(blobs))))
        except RayActorError:
            raise WorkerGone from None
        except (RayError, ConnectionError) as error:
            cause = str(error).strip().partition("\n")[0]
            raise ClusterLost(f"it fails: {cause or type(error).__name__}") from None
        finally:
            with self._changed:
                self._idle.append(name)
                self._changed.notify()
        return name, (answer, made)

    def _wait(self, task: Any) -> Message:
        """What a task gives; meanwhile the head is asked whether it is there."""
        while True:
            try:
                message: Message = ray.get(task, timeout=PATIENCE_SECONDS)
                return message
            except GetTimeoutError:
                if not answers(ray.cluster_resources, PATIENCE_SECONDS):
                    raise ClusterLost(f"its head has not answered for {PATIENCE_SECONDS:g} s") from None

    def _take(self, avoid: frozenset[str]) -> str:
        with self._changed:
            if avoid.issuperset(self._actors):
                raise ClusterLost("none of its workers has the tools of this build")
            self._changed.wait_for(lambda: set(self._idle) - avoid)
            name = next(each for each in self._idle if each not in avoid)
            self._idle.remove(name)
            return name

    def close(self) -> None:
        ray.shutdown()


def connect(address: str, place: str) -> RayCluster:
    """The cluster behind a head; `ClusterLost` when it cannot be used."""
    for tries_left in reversed(range(CONNECT_TRIES)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what it says is said in our words
                ray.init(f"ray://{place}", logging_level=logging.CRITICAL, log_to_driver=False)
            resources: dict[str, Any] = ray.cluster_resources()
            return RayCluster(address, max(1, int(resources.get("CPU", 0))))
        except ConnectionAbortedError:
            if not tries_left:
                raise ClusterLost("its head starts no server for this build") from None
        except (RayError, ConnectionError, TimeoutError) as error:
            raise ClusterLost(f"no Ray head answers there ({type(error).__name__})") from None
    raise AssertionError("the last try returns or raises")
