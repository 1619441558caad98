"""PyTorch's own tensors on a CPU release: right numbers whatever they are, and a sentence where they have no memory."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch_kernels
import triton
from launch_release import build_release, scale_units

HERE = Path(__file__).parent
ELEMENTS = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint64": "u64",
    "uint32": "u32", "uint16": "u16", "uint8": "u8",
}  # fmt: skip
NO_MEMORY = "it has elements and no memory"
NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"

pytestmark = [pytest.mark.all, pytest.mark.usefixtures("torch")]


@pytest.fixture(scope="module")
def tensors(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The package of a release of the kernels, built for this machine's processor."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "kernels").mkdir()
    (folder / "pyproject.toml").write_text(torch_kernels.SETTINGS)
    (folder / "kernels" / "torch.toml").write_text(torch_kernels.SPEC)
    shutil.copy(HERE / "torch_kernels.py", folder / "kernels")
    words = [sys.executable, "-m", "precast", "build", "--project", folder]
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return import_package("tensors", folder / "generated" / "tensors" / "current" / "python")


def import_package(name: str, folder: Path) -> ModuleType:
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def double_of(launch: Callable[..., Any], x: Any, out: Any = None) -> Any:
    """Twice `x` by a release's kernel or Triton's, for `x` of at most two dimensions; a dense tensor."""
    import torch

    rows, columns = x.shape if x.dim() == 2 else (1, x.numel())
    row_stride, column_stride = x.stride() if x.dim() == 2 else (0, x.stride(0) if x.dim() else 0)
    out = torch.empty(x.shape, dtype=x.dtype) if out is None else out
    launch(out, x, rows, columns, row_stride, column_stride)
    return out


def directly(tensors: ModuleType) -> Callable[..., Any]:
    return lambda *values: tensors.double(*values, BLOCK=64)


def through_triton(*values: Any) -> None:
    torch_kernels.double[(values[2],)](*values, BLOCK=64)


def refusal(error: type[Exception], call: Callable[[], object]) -> str:
    """What a refused call says, in one line."""
    with pytest.raises(error) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ELEMENTS)
def test_right_numbers_of_every_element_type(torch, tensors, name):
    dtype = getattr(torch, name)
    numbers = [each - (0 if ELEMENTS[name].startswith("u") else 25) for each in range(50)]
    x = torch.tensor(numbers, dtype=dtype) if "fp" not in ELEMENTS[name] else (torch.tensor(numbers) / 8).to(dtype)
    expected = torch.tensor([2 * each for each in x.to(torch.float64).tolist()]).to(dtype)
    assert len(expected.unique() if name == "float64" else set(expected.to(torch.float64).tolist())) > 20
    for found in (double_of(directly(tensors), x), serve_double(tensors, x)):
        assert found.dtype == dtype and found.view(torch.uint8).tolist() == expected.view(torch.uint8).tolist()


def serve_double(tensors: ModuleType, x: Any) -> Any:
    with tensors.serve():
        return double_of(through_triton, x)


def test_truth_values(torch, tensors):
    x = torch.tensor([True, False, False] * 30)
    out = torch.zeros(90, dtype=torch.bool)
    tensors.invert(out, x, 90, BLOCK=64)
    assert torch.equal(out, ~x)
    with tensors.serve():
        torch_kernels.invert[(2,)](x, out, 90, BLOCK=64)
    assert torch.equal(x, ~out)


# Views of a tensor `x` of 40 × 60 elements, by what they are.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda x: x,
    "transposed": lambda x: x[:, :40].t(),
    "every other": lambda x: x[::2, ::3],
    "column": lambda x: x[:, 7],
    "expanded": lambda x: x[3].expand(5, 60),
    "expanded to columns": lambda x: x[:, 3:4].expand(40, 30),
    "one element off": lambda x: x.flatten()[1:41],
    "without dimensions": lambda x: x[2, 3],
    "empty": lambda x: x[:0],
    "empty columns": lambda x: x[:, 60:],
    "flipped": lambda x: x.flip(0, 1),
    "detached": lambda x: x.clone().requires_grad_().detach(),
    "overlapping": lambda x: x.as_strided((30, 20), (1, 2)),
}


@pytest.mark.parametrize("view", VIEWS)
def test_right_numbers_of_every_view(torch, tensors, view):
    x = VIEWS[view](torch.arange(2400.0).view(40, 60))
    for found in (double_of(directly(tensors), x), serve_double(tensors, x)):
        assert torch.equal(found, 2 * x)


def test_right_numbers_of_every_kind_of_tensor(torch, tensors):
    class Named(torch.Tensor):
        """A subclass with the memory of its base."""

    x = torch.arange(50.0)
    with torch.inference_mode():
        inferred = x.clone()
    kinds = [
        x.clone().requires_grad_(),
        x.clone().requires_grad_() * 1,
        torch.nn.Parameter(x),
        torch.nn.Parameter(x).expand(4, 50),
        x.clone().as_subclass(Named),
        inferred,
        torch.from_numpy(x.numpy()),
        x.clone().share_memory_(),
    ]
    for each in kinds:
        with torch.no_grad():
            assert torch.equal(double_of(directly(tensors), each), 2 * each), type(each)
            assert torch.equal(serve_double(tensors, each), 2 * each), type(each)


def test_a_tensor_is_what_it_is_at_each_call(torch, tensors):
    """Its memory and its type change under the same Python object."""
    x, out = torch.arange(50.0), torch.zeros(50)
    launch = partial(tensors.double, out, x, 1, 50, 0, 1, BLOCK=64)
    for _ in range(2):  # the second time, every unit is loaded
        for data in (torch.ones(50), torch.arange(60.0)[8:58], torch.arange(50.0)):
            x.data = data
            launch()
            assert torch.equal(out, 2 * data)
        x.set_(torch.full((50,), 3.0))
        launch()
        assert out.tolist() == [6.0] * 50
        x.data = torch.ones(50, dtype=torch.float64)
        assert refusal(tensors.LaunchError, launch) == "argument `x` of `double` is fp64, and dtype=fp32"
        x.data = torch.ones(50)
        x.untyped_storage().resize_(0)
        assert refusal(ValueError, launch).endswith(f"is a Tensor that cannot be launched with: {NO_MEMORY}")


@contextmanager
def counted_reads(torch: ModuleType) -> Iterator[list[int]]:
    """The tensors that DLPack's table reads meanwhile, by their addresses as Python objects."""
    capsule = ctypes.pythonapi.PyCapsule_GetPointer
    capsule.restype, capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = (ctypes.c_void_p * 6).from_address(capsule(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    before, reads = table[5], []
    own = kind(before)
    counting = kind(lambda tensor, into: reads.append(tensor) or own(tensor, into))
    table[5] = ctypes.cast(counting, ctypes.c_void_p)
    try:
        yield reads
    finally:
        table[5] = before


def test_dlpack_is_asked_once_of_each_type_and_element_type(torch, tensors):
    """All else is read by torch's own functions, which hold no tensor meanwhile."""
    x, out = torch.arange(50.0), torch.zeros(50)
    many = [x.clone() for _ in range(5)]
    tensors.double(out, x, 1, 50, 0, 1, BLOCK=64)
    with counted_reads(torch) as reads:
        for each in many:
            tensors.double(out, each, 1, 50, 0, 1, BLOCK=64)
        with tensors.serve():
            double_of(through_triton, x, out)
    assert reads == []
    assert torch.equal(out, 2 * x)


def test_a_parameter_is_written_in_place(torch, tensors):
    parameter = torch.nn.Parameter(torch.zeros(50))
    double_of(directly(tensors), torch.arange(50.0), parameter)
    assert parameter.tolist() == [2 * each for each in range(50)]


@pytest.fixture(scope="module")
def ranged(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A release by hand whose `scale` promises range32 of `x`, as only units for AMD do that are compiled."""
    units = []
    for each in (each for each in scale_units() if each.unit.target.backend == "cpu"):
        arguments = (replace(one, range32=one.name == "x") for one in each.unit.arguments)
        units.append(replace(each, unit=replace(each.unit, arguments=tuple(arguments))))
    folder = build_release(tmp_path_factory.mktemp("ranged"), units, name="ranged", selection=())
    return import_package("ranged", folder / "python")


def test_range32_counts_what_a_tensor_reaches(torch, ranged):
    """Memory that nobody touches costs nothing: of a little over 2 GiB, only the numbers that are read are written."""
    half = 2**29  # elements in 2 GiB
    memory = torch.empty(half + 4)
    taken = [
        memory[: half - 1],
        memory[: half - 1 : half - 2],
        memory[half:],
        memory[:1].expand(half * 2),
        memory[:2].view(2, 1).expand(2, half),
        memory[: half - 4].view(4, -1).t(),
        torch.nn.Parameter(memory[: half - 1]),
    ]
    refused = [
        memory,
        memory[:half],
        memory[:: half - 1],
        memory[: half + 1 : half],
        memory[:half].view(2, -1),
        memory[:half].view(2, -1).t(),
        torch.nn.Parameter(memory[:half]),
    ]
    out = torch.zeros(4)
    for number, x in enumerate(taken):
        with torch.no_grad():
            x[(0,) * x.dim()] = number
        ranged.scale(out, x, 2, 1, BLOCK=64)
        assert out.tolist() == [2 * number, 0, 0, 0]
    ranged.scale(out, memory[:0].expand(half * 2, 0), 2, 0, BLOCK=64)
    for x in refused:
        said = refusal(ranged.LaunchError, lambda x=x: ranged.scale(out, x, 2, 1, BLOCK=64))
        assert said == "argument `x` of `scale` promises range32, and its buffer is longer than 2 GiB"


@pytest.mark.parametrize("served", [False, True], ids=["direct", "served"])
def test_none_for_a_pointer(torch, tensors, served):
    x, bias = torch.arange(100.0), torch.ones(100)

    def run(given: Any, **axes: Any) -> Any:
        out = torch.zeros(100)
        if served:
            with tensors.serve():
                torch_kernels.biased[(2,)](out, x, given, 100, BLOCK=64)
        else:
            tensors.biased(out, x, given, 100, BLOCK=64, **axes)
        return out

    for _ in range(2):  # the second time, every unit is loaded
        assert torch.equal(run(None), x)
        assert torch.equal(run(bias), x + bias)
    assert torch.equal(run(torch.nn.Parameter(bias)), x + bias)


def test_none_where_no_variant_is_without(torch, tensors):
    x = torch.arange(50.0)
    for values in ((None, x), (x, None), (None, None)):
        call = partial(tensors.double, *values, 1, 50, 0, 1, BLOCK=64, dtype="fp32")
        name = "out" if values[0] is None else "x"
        sentence = f"argument `{name}` of `double` is None, and no variant is without it; a null pointer is said as 0"
        assert refusal(tensors.LaunchError, call) == sentence
        with tensors.serve(), pytest.raises(RuntimeError, match=sentence):
            torch_kernels.double[(1,)](*values, 1, 50, 0, 1, BLOCK=64)


def test_promises_are_held_by_torchs_addresses(torch, tensors):
    x, out = torch.arange(101.0), torch.zeros(100)
    said = refusal(tensors.LaunchError, lambda: tensors.biased(out, x[1:], None, 100, BLOCK=64))
    assert said == f"argument `x` of `biased` promises align = 16, and its address is {x[1:].data_ptr():#x}"
    said = refusal(tensors.LaunchError, lambda: tensors.double(out, x.double(), 1, 50, 0, 1, BLOCK=64))
    assert said == "argument `x` of `double` is fp64, and dtype=fp32"
    for odd in ("complex64", "complex128", "float8_e8m0fnu"):
        given = torch.zeros(50, dtype=getattr(torch, odd))
        said = refusal(TypeError, lambda given=given: tensors.double(given, given, 1, 50, 0, 1, BLOCK=64))
        assert said == f"argument `out` of `double` has elements of type torch.{odd}, which no kernel takes"


def wrap(torch: ModuleType, x: Any) -> Any:
    """A tensor that holds another and has no memory of its own, as those of quantisation and of distribution do."""

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())

        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
            return function(*arguments, **(keywords or {}))

    return Wrapper(x)


def fake(torch: ModuleType, x: Any) -> Any:
    from torch._subclasses import FakeTensorMode

    return FakeTensorMode().from_tensor(x)


def freed(torch: ModuleType, x: Any, part: slice = slice(None)) -> Any:
    x = x.clone()[part]
    x.untyped_storage().resize_(0)
    return x


# Tensors without memory, made of torch and of a real tensor, and why they are refused.
MEMORYLESS: dict[str, tuple[Callable[[ModuleType, Any], Any], str]] = {
    "fake": (fake, NO_MEMORY),
    "meta": (lambda torch, x: x.to("meta"), "Cannot pack tensors on meta"),
    "wrapper": (wrap, NO_MEMORY),
    "freed": (freed, NO_MEMORY),
    "sparse": (lambda torch, x: x.to_sparse(), NO_STORAGE),
    "compressed": (lambda torch, x: x.view(5, 10).to_sparse_csr(), NO_STORAGE),
    "of zeros": (lambda torch, x: torch._efficientzerotensor(50), NO_MEMORY),
    "fake parameter": (lambda torch, x: torch.nn.Parameter(fake(torch, x)), NO_MEMORY),
    "part of a fake": (lambda torch, x: fake(torch, x)[3:40:2], NO_MEMORY),
    "far part of a fake": (lambda torch, x: fake(torch, x).expand(2**31, 50).clone()[2**30 :], NO_MEMORY),
    "part of the freed": (lambda torch, x: freed(torch, x, slice(3, 40)), NO_MEMORY),
    "part of a wrapper": (lambda torch, x: wrap(torch, x[3:]), NO_MEMORY),
    "another type's": (lambda torch, x: triton.reinterpret(fake(torch, x), triton.language.int32), NO_MEMORY),
    "part of another type's": (
        lambda torch, x: triton.reinterpret(fake(torch, x)[3:], triton.language.int32),
        NO_MEMORY,
    ),
}


@pytest.mark.parametrize("kind", MEMORYLESS)
def test_a_tensor_without_memory_is_refused(torch, tensors, kind):
    make, reason = MEMORYLESS[kind]
    real, out = torch.arange(50.0), torch.zeros(50)
    x = make(torch, real)
    name = type(x).__name__
    for _ in range(2):
        said = refusal(ValueError, lambda: tensors.double(out, x, 1, 50, 0, 1, BLOCK=64))
        assert said == f"argument `x` of `double` is a {name} that cannot be launched with: {reason}"
        said = refusal(ValueError, lambda: tensors.double(x, real, 1, 50, 0, 1, BLOCK=64))
        assert said == f"argument `out` of `double` is a {name} that cannot be launched with: {reason}"
        said = refusal(ValueError, lambda: tensors.biased(out, real, x, 50, BLOCK=64))
        assert said == f"argument `bias` of `biased` is a {name} that cannot be launched with: {reason}"
        with tensors.serve():
            said = refusal(RuntimeError, lambda: torch_kernels.double[(1,)](out, x, 1, 50, 0, 1, BLOCK=64))
        sentence = f"argument `x` of `double` is a {name} that cannot be launched with: {reason}"
        assert said == f"the release cannot run `double`: {sentence}"
        tensors.double(out, real, 1, 50, 0, 1, BLOCK=64)  # and what has memory is launched after it
    assert torch.equal(out, 2 * real)


def test_an_empty_tensor_without_memory_is_launched_with(torch, tensors):
    empty = fake(torch, torch.empty(0, 7))
    tensors.double(empty, empty, 0, 7, 7, 1, BLOCK=64)


# Transformations of a function that is traced, or given tensors that stand for many.
TRACED: dict[str, Callable[[ModuleType, Callable[..., Any], Any], Any]] = {
    "functionalize": lambda torch, call, x: torch.func.functionalize(call)(x),
    "vmap": lambda torch, call, x: torch.func.vmap(call)(x.expand(3, 50)),
    "grad": lambda torch, call, x: torch.func.grad(lambda x: call(x).sum())(x),
    "jvp": lambda torch, call, x: torch.func.jvp(call, (x,), (x,)),
    "fake tracing": lambda torch, call, x: make_fx(call, "fake")(x),
    "symbolic tracing": lambda torch, call, x: make_fx(call, "symbolic")(x),
}


def make_fx(call: Callable[..., Any], mode: str) -> Callable[..., Any]:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(lambda x: call(x), tracing_mode=mode)


@pytest.mark.parametrize("kind", TRACED)
def test_a_function_that_is_traced_is_refused(torch, tensors, kind):
    x, real = torch.rand(50), torch.zeros(50)
    said = r"argument `(out|x)` of `double` is a \w+ that cannot be launched with: [^\n]*$"
    for out in (None, real):
        for part in (slice(None), slice(3, 40)):
            with pytest.raises(ValueError, match="^" + said):
                TRACED[kind](torch, lambda x, out=out, part=part: double_of(directly(tensors), x[part], out), x)
            with tensors.serve(), pytest.raises(RuntimeError, match=said):
                TRACED[kind](torch, lambda x, out=out, part=part: double_of(through_triton, x[part], out), x)
    assert not real.any()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_functions_launch_outside_of_their_graphs(torch, tensors, backend):
    def call(x: Any) -> Any:
        out = torch.empty_like(x)
        tensors.double(out, x + 1, 1, 50, 0, 1, BLOCK=64)
        return out + 1

    x = torch.arange(50.0)
    assert torch.equal(torch.compile(call, backend=backend)(x), 2 * x + 3)


def test_an_operator_of_the_users_is_part_of_a_graph(torch, tensors):
    launch = partial(double_of, directly(tensors))
    double = torch.library.custom_op("tests::double", launch, mutates_args=(), schema="(Tensor x) -> Tensor")
    double.register_fake(torch.empty_like)
    double.register_autograd(lambda context, given: 2 * given)
    x = torch.arange(50.0, requires_grad=True)
    compiled = torch.compile(lambda x: double(x + 1) + 1, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), 2 * x + 3)
    compiled(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 50


def test_a_served_grid_sees_torchs_tensors(torch, tensors):
    x, out = torch.arange(100.0), torch.zeros(100)
    with tensors.serve():
        torch_kernels.biased[lambda meta: (triton.cdiv(meta["x"].numel(), meta["BLOCK"]),)](out, x, None, 100, 64)
    assert torch.equal(out, x)
