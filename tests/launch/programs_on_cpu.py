"""A program as any user of Triton writes it, but for its tensors, which are NumPy's: it is run by `test_backend.py`."""

import sys

import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


class Tensor:
    """A NumPy array with what Triton asks of a tensor."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple:
        return tuple(each // self.array.itemsize for each in self.array.strides)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < (n if not EVEN else 2147483647)
    tl.store(out + i, tl.load(x + i, inside) * factor, inside)


@triton.jit
def parts(arrays, sizes, extra, dtype: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(arrays[1] + i, (tl.load(arrays[0] + i) + sizes[0] * sizes[1]).to(dtype))
    if extra is not None:
        tl.store(extra + i, i)


@triton.jit
def tile(source, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    found = source.load([4, 8])
    tl.store(out + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :], found)


@triton.jit
def say(x):
    tl.device_print("value", tl.load(x))
    tl.device_print("here")
    tl.device_assert(tl.load(x) > 0, "it is positive")


@triton.jit
def products(a, b, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def check_vectors() -> None:
    rng = np.random.default_rng(7)
    x, y = (rng.standard_normal(100_003, dtype=np.float32) for _ in range(2))
    out = np.empty_like(x)
    kernel = add[lambda given: (triton.cdiv(x.size, given["BLOCK"]),)](
        Tensor(x), Tensor(y), Tensor(out), x.size, BLOCK=512
    )
    assert np.array_equal(out, x + y)
    assert sorted(kernel.asm) == ["llir", "loops", "obj", "source", "ttir"]
    assert kernel.asm["obj"][:4] == b"\x7fELF"
    assert (kernel.metadata.target.backend, kernel.metadata.num_warps) == ("cpu", 4)
    scale[(1, triton.cdiv(x.size, 256))](Tensor(x), Tensor(out), x.size, 0.5, BLOCK=256, num_warps=8)
    assert np.array_equal(out, x * np.float32(0.5))
    add[(0,)](Tensor(x), Tensor(y), Tensor(out), x.size, BLOCK=512)
    assert np.array_equal(out, x * np.float32(0.5))


def check_arguments() -> None:
    source, out, extra = np.arange(16, dtype=np.int32), np.zeros(16, np.int32), np.zeros(16, np.int32)
    parts[(1,)]((Tensor(source), Tensor(out)), (3, 1), None, dtype=tl.int32)
    assert np.array_equal(out, source + 3) and not extra.any()
    parts[(1,)]((Tensor(source), Tensor(out)), (3, 5), Tensor(extra), dtype=tl.int8)
    assert np.array_equal(out, source + 15) and np.array_equal(extra, source)
    matrix, found = np.arange(512, dtype=np.float32).reshape(16, 32), np.empty((4, 8), np.float32)
    tile[(1,)](TensorDescriptor.from_tensor(Tensor(matrix), [4, 8]), Tensor(found), 4, 8)
    assert np.array_equal(found, matrix[4:8, 8:16])
    a, b = (np.random.default_rng(seed).integers(-9, 9, (8, 8)).astype(np.float32) for seed in (1, 2))
    product = np.empty_like(a)
    products[(1,)](Tensor(a), Tensor(b), Tensor(product), SIZE=8)  # smaller than any GPU's least
    assert np.array_equal(product, a @ b)


def check_hooks() -> None:
    seen = []
    for chain, word in (
        (triton.knobs.runtime.launch_enter_hook, "enter"),
        (triton.knobs.runtime.launch_exit_hook, "exit"),
    ):
        chain.add(lambda about, word=word: seen.append((word, about.get()["name"])))
    x = np.ones(16, np.float32)
    scale[(1, 1)](Tensor(x), Tensor(x), 16, 3.0, BLOCK=16)
    assert seen == [("enter", "scale"), ("exit", "scale")] and (x == 3).all()
    kernel = add.warmup(Tensor(x), Tensor(x), Tensor(x), 1024, BLOCK=64, grid=(1,))
    assert "define" in kernel.asm["llir"] and len(seen) == 2
    stages, times = [], []

    def inspect(backend=None, made=None, *_):
        if backend is None:
            return "key", "digest"
        lower = made["loops"]
        made["loops"] = lambda module, kept: stages.extend([*made, str(module).count("tt.load")]) or lower(module, kept)

    triton.knobs.runtime.add_stages_inspection_hook = inspect
    triton.knobs.compilation.listener = lambda **about: times.append(
        [name for name, _ in about["times"].lowering_stages]
    )
    add[(1,)](Tensor(x), Tensor(x), Tensor(x), 16, BLOCK=32)
    assert (
        stages == ["ttir", "loops", "llir", "obj", 2] and times == [["ttir", "loops", "llir", "obj"]] and (x == 6).all()
    )


def check_binary() -> None:
    x = np.arange(64, dtype=np.float32)
    kernel = add[(1,)](Tensor(x), Tensor(x), Tensor(x), 64, BLOCK=64)
    assert (x == 2 * np.arange(64)).all()
    assert sorted(kernel.asm) == ["cubin", "source"] and kernel.asm["cubin"][:4] == b"\x7fELF"


def check_words() -> None:
    for value in (5, -5):
        print("launching")
        sys.stdout.flush()
        try:
            options = {"num_warps": 2} if value < 0 else {}
            say[(1,)](Tensor(np.array([value], np.int32)), debug=True, **options)
        except Exception as error:
            print(type(error).__name__, error)


if __name__ == "__main__":
    checks = (check_vectors, check_arguments, check_hooks, check_binary, check_words)
    {each.__name__.removeprefix("check_"): each for each in checks}[sys.argv[1]]()
