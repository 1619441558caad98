"""The cluster behind an address: `dask://HOST:PORT` of a scheduler, `ray://HOST:PORT` of a Ray client server.

In: an address. Out: a `Cluster`, or a sentence about why there is none. What speaks to either is an extra, and is
imported only for an address of its kind.
"""

from __future__ import annotations

import importlib
import re

from precast.errors import ToolError
from precast.worker.cluster import Cluster, ClusterLost

KINDS = {"dask": "precast.worker.dask_cluster", "ray": "precast.worker.ray_cluster"}
PLACE = re.compile(r"(?:[\w.-]+|\[[\w:.%]+\]):([0-9]{1,9})")
ADDRESS_HINT = "`dask://HOST:PORT` of a scheduler, or `ray://HOST:PORT` of a Ray head's client server"


def find_address_fault(address: str) -> str:
    """What is wrong with an address; "" for nothing."""
    kind, separator, place = address.partition("://")
    found = PLACE.fullmatch(place)
    if not separator or kind not in KINDS:
        return f"`{kind}` is no kind of cluster that Precast knows"
    if not found:
        return "it names no host and port"
    return "" if 0 < int(found[1]) < 1 << 16 else f"there is no port {found[1]}"


def connect(address: str) -> Cluster:
    """The cluster there; `ToolError` when it cannot be used."""
    kind, _, place = address.partition("://")
    try:
        module = importlib.import_module(KINDS[kind])
    except ImportError as error:
        hint = f"pip install 'precast[{kind}]'"
        raise ToolError(f"`--executor {address}` takes what is not installed: {error}", hint=hint) from None
    try:
        cluster: Cluster = module.connect(address, place)
    except ClusterLost as lost:
        raise ToolError(
            f"{address} cannot be used: {lost}", hint="without --executor, units are compiled here"
        ) from None
    return cluster
