"""Users' own files as they are, through plan, import and workers: what libraries of kernels write builds, or is refused
in words at its line."""

import dataclasses
from pathlib import Path

import pytest
from compiling import plan_jobs

from precast.artifact import UnitResult
from precast.engines.triton.load import HOOK_WARNING
from precast.errors import CompileError, Place
from precast.job import Job
from precast.worker.pool import WorkerPool

HEAD = "import triton\nimport triton.language as tl\n"
TARGETS = ("cuda:80", "hip:gfx942", "cpu:x86-64-v3")
BODY = "\n    tl.store(out + tl.arange(0, 16), V)\n"
SPEC = '[kernel.{name}]\nsource = "{source}"\ngrid = [1]\nargs.out = "*i32"\nmatrix.V = [3]\n'


def make_project(folder: Path, files: dict[str, str], more: str = "") -> Path:
    for name, text in {"pyproject.toml": f'[tool.precast]\nname = "p"\ntargets = ["cuda:80"]\n{more}', **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def build(jobs: list[Job], workers: int = 1) -> dict[str, UnitResult]:
    with WorkerPool(workers) as pool:
        futures = {str(job.unit): pool.submit(job) for job in jobs}
        return {unit: future.result() for unit, future in futures.items()}


def text_of(job: Job) -> str:
    """The unit's ttir."""
    return Path(job.output, f"{job.unit.kernel}.ttir").read_text()


FORMS = (
    HEAD
    + """
import functools
from absent.utils import tl as language, triton as compiler
from triton.language import constexpr as CE

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def alias(out, V: CE): BODY


@compiler.jit
def reexported(out, V: language.constexpr): BODY


def own_jit(fn):
    return triton.jit(fn)


def with_options(**options):
    def put(fn):
        made = triton.jit(fn, **options)

        @functools.wraps(fn)
        def launch(*arguments, grid=(1,)):
            return made[grid](*arguments)

        return launch

    return put


@own_jit
def own(out, V: tl.constexpr): BODY


@with_options(debug=False)
def wrapped(out, V: tl.constexpr): BODY


class Entry:
    def __init__(self, fn, key):
        self.key, self.inner = key, fn

    def __getitem__(self, grid):
        return self.inner[grid]


class Kernels:
    @staticmethod
    @triton.jit
    def method(out, V: tl.constexpr):
        tl.store(out + tl.arange(0, 16), V)


def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


@triton.autotune(configs=[triton.Config({}, num_warps=4 if is_cuda() else 8)], key=[])
@triton.jit
def tuned(out, V: tl.constexpr): BODY


entry = Entry(tuned, key=["V"])


def make(*, width):
    size = tl.constexpr(width)

    @triton.jit
    def made(out, V: tl.constexpr):
        tl.store(out + tl.arange(0, size), V)

    return made


class Slotted:
    __slots__ = ("__inner",)

    def __init__(self, fn):
        self.__inner = triton.jit(fn)

    def __getitem__(self, grid):
        return self.__inner[grid]


@Slotted
def slotted(out, V: tl.constexpr): BODY


first, second = make(width=16), make(width=16)
processors = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)["multiprocessor_count"]

for number in range(2):

    @triton.jit
    def looped(out, V: tl.constexpr):
        tl.store(out + tl.arange(0, 16), V)
""".replace("BODY", BODY.strip("\n").replace("    tl", "\n    tl"))
)
SOURCES = {
    "alias": "alias", "reexported": "reexported", "own": "own", "wrapped": "wrapped", "method": "Kernels.method",
    "tuned": "tuned", "entry": "entry", "second": "second", "called": "make(width=16)",
    "slotted": "slotted", "looped": "looped",
}  # fmt: skip


def test_forms_of_kernels_build(tmp_path):
    specs = "".join(SPEC.format(name=name, source=f"k.py:{source}") for name, source in SOURCES.items())
    jobs = plan_jobs(make_project(tmp_path, {"kernels/k.py": FORMS, "kernels/k.toml": specs}), tmp_path, ["cuda:80"])
    assert [job.unit.kernel for job in jobs] == list(SOURCES)
    build(jobs)
    assert all("tt.store" in text_of(job) and "dense<3>" in text_of(job) for job in jobs)


CHOOSING = (
    HEAD
    + """
import os
import torch

try:
    KIND = triton.runtime.driver.active.get_current_target().backend
except Exception:
    KIND = "none"
FACTOR = tl.constexpr({"cuda": 2, "hip": 3, "cpu": 4}.get(KIND, 9) * 10 + int(torch.cuda.is_available()))
MODE = tl.constexpr(int(os.environ.get("MODE", "0")))
os.environ["MODE"] = "8"


@triton.jit
def choosing(out, V: tl.constexpr):
    tl.store(out + tl.arange(0, 16), V * 1000 + FACTOR * 10 + MODE)
"""
)
PLAIN = HEAD + f"@triton.jit\ndef plain(out, V: tl.constexpr): {BODY}"
KINDS = {"cuda": 2, "hip": 3, "cpu": 4}


def expect_choice(backend: str) -> int:
    """The number that `choosing` stores, with `torch` and without."""
    return 3007 + 100 * KINDS[backend] + 10 * (backend != "cpu")


@pytest.fixture(scope="module")
def choosing_jobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choosing")
    specs = SPEC.format(name="choosing", source="k.py:choosing") + SPEC.format(name="plain", source="plain.py:plain")
    files = {"kernels/k.py": CHOOSING, "kernels/plain.py": PLAIN, "kernels/k.toml": specs}
    return plan_jobs(make_project(folder, files, "[tool.precast.environment]\nMODE = 7\n"), folder, TARGETS)


@pytest.mark.parametrize(
    "order",
    ["as planned", "reversed", *(pytest.param(each, marks=pytest.mark.all) for each in ("GPUs last", "two workers"))],
)
def test_a_unit_is_what_its_target_makes_it_in_any_order(choosing_jobs, tmp_path, order):
    jobs = [
        dataclasses.replace(job, store=str(tmp_path / "store"), output=str(tmp_path / job.unit.slug))
        for job in choosing_jobs
    ]
    orders = {
        "reversed": jobs[::-1],
        "GPUs last": sorted(jobs, key=lambda job: (job.unit.target.backend, job.unit.kernel)),
    }
    build(orders.get(order, jobs), 2 if order == "two workers" else 1)
    found = {job.unit.target.backend: text_of(job) for job in jobs if job.unit.kernel == "choosing"}
    assert set(found) == set(KINDS)
    for backend, text in found.items():
        assert f"dense<{expect_choice(backend)}>" in text, (backend, text)


RELATIVE = {
    "src/pkg/__init__.py": "",
    "src/pkg/helper.py": HEAD + "@triton.jit\ndef twice(x):\n    return x + x\n",
    "src/pkg/k.py": HEAD
    + "import importlib\nfrom .helper import twice\nlazy = importlib.import_module('.la' + 'zy', __package__)\n"
    "@triton.jit\ndef k(out, V: tl.constexpr):\n    tl.store(out + tl.arange(0, 16), twice(V))\n",
    "src/pkg/lazy.py": "",
    "src/pkg/k.toml": SPEC.format(name="k", source="k.py:k"),
}


@pytest.mark.parametrize("order", [1, -1])
def test_both_engines_import_a_package_and_tell_all_files(tmp_path, order):
    folder = make_project(tmp_path, RELATIVE, 'kernels = ["src/pkg/*.toml"]\npythonpath = ["src"]\n')
    results = build(plan_jobs(folder, tmp_path, ("cuda:80", "cpu:x86-64-v3"))[::order])
    files = tuple(f"src/pkg/{each}.py" for each in ("__init__", "helper", "k", "lazy"))
    assert [result.files_used for result in results.values()] == [files, files]


def refuse(folder: Path, text: str, source: str = "k.py:k", **more: str) -> CompileError:
    files = {"kernels/k.py": HEAD + text, "kernels/k.toml": SPEC.format(name="k", source=source), **more}
    [job] = plan_jobs(make_project(folder, files), folder, ["cuda:80"])
    with WorkerPool(1) as pool, pytest.raises(CompileError) as caught:
        pool.submit(job).result()
    return caught.value


CALLING = (
    "@triton.constexpr_function\ndef pick(x):\n    {}\n"
    "@triton.jit\ndef k(out, V: tl.constexpr):\n    tl.store(out, pick(V))\n"
)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("raise KeyError(x)", "KeyError: 3"),
        ("raise SystemExit(4)", "SystemExit: 4"),
        ("raise type('Own', (BaseException,), {})('mine')", "Own: mine"),
    ],
)
def test_what_code_of_the_author_raises_while_it_compiles_is_told_at_its_line(tmp_path, statement, message):
    error = refuse(tmp_path, CALLING.format(statement))
    assert (error.message, error.where) == (message, Place("kernels/k.py", 5))


HOOKED = (
    HEAD
    + """
import hashlib
import pathlib
import torch
from triton import knobs
from triton._C.libtriton import ir, passes

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def k(out, V: tl.constexpr):
    tl.store(out + tl.arange(0, 16), V)


def get_key():
    return pathlib.Path(__file__).read_text()


def change_stages(self=None, stages=None, options=None, language=None, capability=None):
    if all(each is None for each in (stages, options, language, capability)):
        return get_key(), hashlib.sha256(get_key().encode()).hexdigest()
    stages["ttir"] = lambda source, metadata: 1 / 0


knobs.runtime.add_stages_inspection_hook = change_stages
"""
)


def test_a_hook_set_by_a_kernels_module_touches_no_unit_and_is_told(tmp_path):
    specs = SPEC.format(name="k", source="k.py:k") + SPEC.format(name="plain", source="plain.py:plain")
    files = {"kernels/k.py": HOOKED, "kernels/plain.py": PLAIN, "kernels/k.toml": specs}
    hooked, plain = build(plan_jobs(make_project(tmp_path, files), tmp_path, ["cuda:80"])).values()
    assert hooked.warnings == (HOOK_WARNING,) and plain.warnings == ()


def test_a_failure_inside_an_installed_package_is_told_at_its_own_line(tmp_path):
    """Of the package's module, and of its jit function; the hint names the project's line."""
    site = tmp_path / "site-packages" / "helpers"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text("")
    (site / "broken.py").write_text("\nVALUE = {}['missing']\n")
    (site / "refused.py").write_text(HEAD + "@triton.jit\ndef twice(x):\n    return x.nothing\n")
    more = {
        "pyproject.toml": '[tool.precast]\nname = "p"\ntargets = ["cuda:80"]\npythonpath = [".", "site-packages"]\n'
    }
    kernel = "import helpers.{0}\n@triton.jit\ndef k(out, V: tl.constexpr):\n    tl.store(out, helpers.{0}.twice(V))\n"
    broken = refuse(tmp_path, kernel.format("broken"), **more)
    assert broken.message == "the kernel's module does not import: KeyError: 'missing'"
    assert (broken.where, broken.hint) == (
        Place("site-packages/helpers/broken.py", 2), "it is reached from kernels/k.py:3:1",
    )  # fmt: skip
    refused = refuse(tmp_path, kernel.format("refused"), **more)
    assert refused.where is not None and (refused.where.file, refused.where.line) == (
        "site-packages/helpers/refused.py",
        5,
    )
    assert refused.hint == "it is reached from kernels/k.py:6:19"
