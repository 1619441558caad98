"""The release's Python package: calls, tensors of every kind, errors of one line."""

from __future__ import annotations

import copy
import importlib
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import aligned
from test_runtime import host_target

from precast.launch.formats import KernelInterface
from precast.launch.help import render_help


def test_call_with_grid_from_the_spec(small, x):
    out = aligned(1000)
    assert small.scale(out, x, 2.5, 1000, BLOCK=64) is None
    np.testing.assert_array_equal(out, 2.5 * x)


def test_a_kernel_without_a_grid(small):
    counts = np.zeros(8, np.int32)
    with pytest.raises(small.LaunchError) as caught:
        small.free(counts, 8)
    assert str(caught.value) == "free@cpu:x86-64-v2 has no grid in its spec: call `free[grid](...)`"
    assert caught.value.status == 8
    assert not counts.any()
    small.free[8](counts, 8)
    assert counts.tolist() == [1] * 8
    small.free[lambda meta: (meta["n"],)](counts, 4)
    assert counts.tolist() == [2] * 4 + [1] * 4


def test_call_with_a_grid(small, x):
    for grid in (2, (2,), [2, 1], (2, 1, 1), lambda meta: (meta["n"] // 8 * meta["BLOCK"] // 32,)):
        out = aligned(1000)
        small.scale[grid](out, x, 2.5, 8 if callable(grid) else 1000, BLOCK=64)
        done = 8 if callable(grid) else 128
        np.testing.assert_array_equal(out, np.where(np.arange(1000) < done, 2.5 * x, 0))


def test_element_types_choose_the_variant(small, x):
    wide, out = aligned(1000, "float64"), aligned(1000, "float64")
    wide[:] = x
    small.scale(out, wide, 3, 1000, BLOCK=256)
    np.testing.assert_array_equal(out, 3 * wide)
    small.scale(out, wide, 4, 1000, BLOCK=256, dtype="fp64")
    small.scale(out, wide, 4, 1000, BLOCK=256, dtype=np.dtype("float64"))
    np.testing.assert_array_equal(out, 4 * wide)


def test_arguments_by_name(small, x):
    out = aligned(1000)
    small.scale(out, x, n=1000, alpha=2, BLOCK=64)
    np.testing.assert_array_equal(out, 2 * x)


def test_addresses_and_numbers_of_numpy(small, x):
    out = aligned(1000)
    small.scale(out.ctypes.data, x.ctypes.data, np.float32(2), np.int32(1000), BLOCK=np.int64(64), dtype="fp32")
    np.testing.assert_array_equal(out, 2 * x)


class OnlyDLPack:
    """What a framework without array interfaces offers."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class OnlyPointer:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return self.array.ctypes.data


class LikeTorch(OnlyPointer):
    """What torch's tensors offer, device and all."""

    device = -1

    @property
    def dtype(self) -> str:
        return f"torch.{self.array.dtype}"

    def get_device(self) -> int:
        return self.device

    @property
    def nbytes(self) -> int:
        return self.array.nbytes


@pytest.mark.parametrize("wrap", [OnlyDLPack, OnlyPointer, LikeTorch])
def test_tensors_of_other_frameworks(small, x, wrap):
    out = aligned(1000)
    small.scale(wrap(out), wrap(x), 2, 1000, BLOCK=64, dtype="fp32")
    np.testing.assert_array_equal(out, 2 * x)


def test_every_scalar_and_a_tuple(small, x):
    out = np.zeros(32, np.int64)
    small.record(out, True, -2, -3, -4, -5, 1, 200, 60000, 4_000_000_000, 2**64 - 1, 1.0, 1.0, 1.5, -2.5, 1.0,
                 (-16, (x, 0.5)), -19, 1 / 3, None, 1, WIDTH="i32", REAL="fp16")  # fmt: skip
    expected = [1, -2, -3, -4, -5, 1, 200, 60000, 4_000_000_000, -1, 0x3C00, 0x3F80, 0x3FC00000, -0x3FFC000000000000,
                0x3C, -16, x.ctypes.data, 0x3FE0000000000000, -19, 0x3555]  # fmt: skip
    assert out[:20].tolist() == expected


def message(error: type[Exception], call) -> str:
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_messages(small, x):
    host, out = host_target(), aligned(1000)
    scale, launch_error = small.scale, small.LaunchError
    half, odd = aligned(1000, "float16"), aligned(999, offset=1)
    cases = [
        (launch_error, lambda: scale(out.ctypes.data, x.ctypes.data, 2, 1000),
         f"several units of `scale` fit on {host}; say which: dtype is one of fp32, fp64; BLOCK is one of 64, 256"),
        (launch_error, lambda: scale(out, x, 2, 1000, BLOCK=128),
         "`scale` has no variant with BLOCK=128; there are 64, 256"),
        (launch_error, lambda: scale(half, x, 2, 1000, BLOCK=64),
         "argument `out` of `scale` is fp16, and there is no variant with dtype=fp16"),
        (launch_error, lambda: scale(out, aligned(9, "float64"), 2, 9, BLOCK=64),
         "argument `x` of `scale` is fp64, and dtype=fp32"),
        (launch_error, lambda: scale(out, x, 2, 1000, BLOCK=64, dtype="fp64"),
         "argument `out` of `scale` is fp32, and dtype=fp64"),
        (launch_error, lambda: scale(out, odd, 2, 999, BLOCK=64),
         f"argument `x` of `scale` promises align = 16, and its address is {odd.ctypes.data:#x}"),
        (launch_error, lambda: small.count(x, 1),
         "argument `counts` of `count` is fp32, count@cpu:x86-64-v2 takes i32"),
        (TypeError, lambda: scale(out, x, 2, BLOCK=64),
         "the call of `scale` lacks n; its arguments are out, x, alpha, n"),
        (TypeError, lambda: scale(out, n=2, BLOCK=64),
         "the call of `scale` lacks x, alpha; its arguments are out, x, alpha, n"),
        (TypeError, lambda: scale(out, x, 2, 3, 4, BLOCK=64), "`scale` takes 4 arguments (out, x, alpha, n), not 5"),
        (TypeError, lambda: scale(out, x, 2, 1000, BLOK=64),
         "`scale` has no argument or axis `BLOK`; arguments: out, x, alpha, n; axes: dtype, BLOCK"),
        (TypeError, lambda: scale(out, x, 2, 1000, n=7, BLOCK=64), "`scale` got argument `n` twice"),
        (TypeError, lambda: scale(out, "x", 2, 1000, BLOCK=64),
         "argument `x` of `scale` takes a tensor, an address or None, not str"),
        (TypeError, lambda: scale(out, x.astype(complex), 2, 1000, BLOCK=64),
         "argument `x` of `scale` has elements of type complex128, which no kernel takes"),
        (TypeError, lambda: scale(out, x, "2", 1000, BLOCK=64), "argument `alpha` of `scale` takes fp32, not str"),
        (TypeError, lambda: scale(out, x, 2, 10.5, BLOCK=64), "argument `n` of `scale` takes i32, not float"),
        (OverflowError, lambda: scale(out, x, 2, 2**31, BLOCK=64),
         "argument `n` of `scale` is 2147483648, which does not fit in i32"),
        (launch_error, lambda: scale(out, x, 2, 1000, BLOCK="many"),
         "`scale` has no variant with BLOCK='many'; there are 64, 256"),
        (launch_error, lambda: scale(out, x, 2, 1000, BLOCK=64.0),
         "`scale` has no variant with BLOCK=64.0; there are 64, 256"),
        (launch_error, lambda: scale(out, x, 2, 1000, BLOCK=64, dtype="fp17"),
         "`scale` has no variant with dtype='fp17'; there are fp32, fp64"),
        (launch_error, lambda: scale[-1](out, x, 2, 1000, BLOCK=64),
         "the grid of scale:dtype=fp32,BLOCK=64@cpu:x86-64-v3 is negative along x: -1"),
        (launch_error, lambda: small.fail(3, 10), "a device assertion failed in fail@cpu:x86-64-v2"),
        (TypeError, lambda: scale(out.ctypes.data, x.ctypes.data, 2, 1000, BLOCK=64, dtype="fp32", stream="s"),
         "stream is an address or a stream of torch or CuPy, not 's'"),
        (TypeError, lambda: scale(out.ctypes.data, x.ctypes.data, 2, 1000, BLOCK=64, dtype="fp32", stream=-1),
         "stream is an address or a stream of torch or CuPy, not -1"),
        (TypeError, lambda: scale(out, x, 2, 1000, BLOCK=64, stream=0),
         "stream is a GPU's, and argument `out` is in the host's memory"),
        (TypeError, lambda: scale(out, x, 2, 1000, BLOCK=64, stream=1 << 40),
         "stream is a GPU's, and argument `out` is in the host's memory"),
    ]  # fmt: skip
    for error, call, expected in cases:
        assert message(error, call) == expected


def test_status_of_an_error(small, x):
    with pytest.raises(small.LaunchError) as caught:
        small.scale(x, x, 1, 1000, BLOCK=7)
    assert caught.value.status == 6


def test_questions(small):
    assert " ".join(small.release.kernels) == (
        "biased bounded by_argument by_factors by_many by_product count fail features free joint mixed nothing numbers "
        "ordered pinned promised record scale signed sole split steady tally tiled typed"
    )
    assert small.scale.__name__ == "scale" and small.scale.axes == ("dtype", "BLOCK")
    assert small.scale.arguments == ("out", "x", "alpha", "n")
    small.preload("scale", device="cpu")
    loaded = [unit["unit"] for unit in small.query() if unit["loaded"]]
    assert "scale:dtype=fp32,BLOCK=64,n%16@cpu:x86-64-v3" in loaded
    small.selfcheck()
    with pytest.raises(KeyError, match="the release has no kernel 'scaly'"):
        small.release.kernel("scaly")


def test_buffer_reader(small):
    seen = []
    small.set_buffer_reader(lambda *values: seen.append(values))
    try:
        small.tally(0, 4)
        unit, name, data, each, programs = seen.pop()
        assert (unit, name, each, programs) == ("tally@cpu:x86-64-v2", "tally", 8, 16)
        assert np.frombuffer(data, np.int64).tolist() == list(range(16))
        small.set_buffer_reader(lambda *values: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            small.tally(0, 4)
    finally:
        small.set_buffer_reader(None)


def test_threads_launch_at_once(small):
    from concurrent.futures import ThreadPoolExecutor

    small.set_threads(3)

    def count(_: int) -> int:
        counts = np.zeros(300, np.int32)
        for _ in range(5):
            small.count(counts, 300)
        return int((counts == 5).sum())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, range(16))) == [300] * 16


def test_package_needs_nothing_but_python(release: Path, tmp_path: Path):
    code = f"""
import sys; sys.path.insert(0, {str(release / "python")!r})
import array, small
x = array.array("f", range(64)); place = x.buffer_info()[0]
assert place % 16 == 0
small.scale(place, place, 2, 64, dtype="fp32", BLOCK=64)
assert x[63] == 126
assert not {{"numpy", "torch", "triton", "precast"}} & set(sys.modules), sys.modules
"""
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, env={}, cwd=tmp_path)


def test_stubs_agree_with_the_package(release: Path, tmp_path: Path):
    (tmp_path / "use.py").write_text(
        "import small\n"
        "small.scale(0, 0, 2.0, 64, BLOCK=64, dtype='fp32')\n"
        "small.scale[(1, 2)](0, 0, 2.0, 64, BLOCK=64)\n"
        "small.record(0, True, 1, 1, 1, 1, True, 1, 1, 1, 1, 1, 1, 1, 1, 1, (1, (0, 1.0)), 1, 1.0, None, 1)\n"
    )
    (tmp_path / "misuse.py").write_text(
        "import small\nsmall.scale(0, 0, 2.0, 'n', BLOCK=64)\nsmall.scale(0, 0, 2.0, 1, BLOCK=65)\nsmall.scaly()\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    result = subprocess.run([*command, "use.py", "misuse.py"], cwd=tmp_path, capture_output=True, text=True,
                            env={"MYPYPATH": str(release / "python"), "PATH": "/usr/bin"})  # fmt: skip
    places = [line.split(": ")[0] for line in result.stdout.splitlines() if "error" in line]
    assert places == ["misuse.py:2", "misuse.py:3", "misuse.py:4"], result.stdout


def test_a_kernel_is_found_again_by_its_name(small):
    kernel = small.scale
    assert (kernel.__module__, kernel.__qualname__) == ("small", "scale")
    assert pickle.loads(pickle.dumps(kernel)) is copy.copy(kernel) is copy.deepcopy([kernel])[0] is kernel
    assert small.release.scale is kernel
    with pytest.raises(AttributeError):
        _ = small.release.scaly


def test_a_kernel_of_no_package_is_copied_and_not_pickled(small):
    kernel = small.release.kernel("scale")
    assert copy.copy(kernel) is kernel
    with pytest.raises(TypeError, match="is of no package, by which another process could find it"):
        pickle.dumps(kernel)


def test_all_that_is_public_can_be_pickled_and_copied(small, x):
    release = small.release
    assert pickle.loads(pickle.dumps(release)) is copy.copy(release) is copy.deepcopy(release) is release
    for name in small.__all__:
        public = getattr(small, name)
        assert pickle.loads(pickle.dumps(public)) == copy.deepcopy(public) == copy.copy(public) == public, name
    bound = small.scale[(16,)]
    assert repr(bound) == "<kernel scale[(16,)]>"
    for same in (pickle.loads(pickle.dumps(bound)), copy.copy(bound), copy.deepcopy(bound)):
        out = aligned(1000)
        same(out, x, 2.0, 1000, BLOCK=64)
        np.testing.assert_array_equal(out, 2 * x)
    with pytest.raises(small.LaunchError) as caught:
        small.scale(aligned(1000), x, 2.0, 1000, BLOCK=3)
    for same in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert (type(same), str(same), same.status) == (small.LaunchError, str(caught.value), caught.value.status)


@pytest.mark.parametrize("docstring", ["", "One line.", "One line.\n\nAnd more."])
def test_help_has_the_kernel_s_own_words(docstring):
    kernel = KernelInterface("copy", "copy.py:copy", (), (), True, (), docstring)
    first, *rest = render_help(kernel, ["copy@cuda:90"]).split("\n\n")
    assert "\n\n".join(rest) == "\n\n".join(filter(None, [docstring, "Variants (1):\n    copy@cuda:90"]))
    assert first == "copy(stream=None)"


def test_help_says_what_a_call_takes(small):
    text = pydoc.render_doc(small.scale, renderer=pydoc.plaintext)
    lines = [line.strip() for line in text.splitlines()]
    assert "scale(out, x, alpha, n, dtype=…, BLOCK=…, stream=None)" in lines
    assert "out    tensor, address or None, of `dtype`" in lines and "n      i32" in lines
    assert "BLOCK  64, 256" in lines
    assert any(line.startswith("Variants (") for line in lines)
    assert "scale:dtype=fp32,BLOCK=64,n%16@cpu:x86-64-v3" in lines


def test_a_release_says_what_it_is(small):
    folder, targets = small.release.folder, ", ".join(small.release.targets)
    assert repr(small.release) == f"<release small 1.2.3 for {targets} in {folder}>"
    assert (small.__version__, small.release.version, small.release.name) == ("1.2.3", "1.2.3", "small")
    served = importlib.import_module("small._serve")
    assert issubclass(small.MissingVariant, RuntimeError) and served.MissingVariant is small.MissingVariant
