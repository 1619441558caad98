"""A server of a release: `scale_add` over HTTP. A request takes the release that `current` leads to when it begins."""

import importlib
import os
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy
from fastapi import FastAPI

CURRENT = Path(os.environ["CURRENT"])
app = FastAPI()
lock = threading.Lock()
loaded: tuple[Path, ModuleType] | None = None


def load_release() -> ModuleType:
    """The package of the current release; a request that holds an older one goes on with that."""
    global loaded
    with lock:
        folder = CURRENT.resolve()
        if loaded is None or loaded[0] != folder:
            for name in [each for each in sys.modules if each.partition(".")[0] == "shop"]:
                del sys.modules[name]
            sys.path.insert(0, str(folder / "python"))
            try:
                loaded = folder, importlib.import_module("shop")
            finally:
                del sys.path[0]
        return loaded[1]


@app.get("/scale")
def scale(n: int, alpha: float) -> dict[str, object]:
    shop = load_release()
    x = numpy.arange(n, dtype=numpy.float32)
    out = numpy.empty_like(x)
    shop.scale_add(out, x, numpy.ones_like(x), alpha, n)
    return {"version": shop.__version__, "last": float(out[-1]), "worker": os.getpid()}
