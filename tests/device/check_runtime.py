"""What a launch can carry, on a real NVIDIA GPU: streams, graphs, scratch, clusters, threads, devices, frameworks.

Part of the device kit: needs the kit's folder and torch. Usage: check_runtime.py KIT [OUT.json]. Each check is a
function; its result is `ok`, why it does not apply here, or what went wrong.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Check = Callable[[Any, Path], "str | None"]  # None: right; else why it does not apply


def softmax(kernels: Any, device: str = "cuda", rows: int = 64, **options: Any) -> None:
    """One launch whose result is compared at once."""
    x = torch.rand(rows, 1000, device=device)
    out = torch.empty_like(x)
    kernels.softmax(out, x, x.stride(0), rows, 1000, BLOCK=1024, **options)
    torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)


def check_streams(kernels: Any, kit: Path) -> None:
    stream = torch.cuda.Stream()
    x, out = torch.rand(64, 1000, device="cuda"), torch.empty(64, 1000, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        kernels.softmax(out, x, 1000, 64, 1000, BLOCK=1024)
    stream.synchronize()
    torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)
    for given in (stream, stream.cuda_stream, 0, 2):
        out.zero_()
        torch.cuda.synchronize()
        kernels.softmax(out, x, 1000, 64, 1000, BLOCK=1024, stream=given)
        torch.cuda.synchronize()
        torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)


def check_graph_capture_with_first_use_inside(kernels: Any, kit: Path) -> None:
    x, out = torch.rand(64, 1000, device="cuda"), torch.zeros(64, 1000, device="cuda")
    torch.cuda.synchronize()
    kernels.unload()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernels.softmax(out, x, 1000, 64, 1000, BLOCK=1024)
    assert not out.any(), "the launch ran while it was captured"
    for _ in range(3):
        x.copy_(torch.rand_like(x))
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)


def persistent_product(kernels: Any) -> None:
    a, b = (torch.randn(256, 256, device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.empty(256, 256, device="cuda", dtype=torch.float16)
    kernels.matmul_persistent(out, a, b, 256, 256, 256, 256, 256, 256, 64)
    torch.testing.assert_close(out.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-1)


def facts_of(kit: Path, kernel: str) -> dict[str, Any]:
    units = json.loads((kit / "release/manifest.json").read_text())["units"]
    return next(unit["facts"] for unit in units if unit["kernel"] == kernel and unit["target"] == "cuda:90")


def check_scratch_by_default_and_by_allocator(kernels: Any, kit: Path) -> None:
    assert facts_of(kit, "matmul_persistent")["global_scratch_bytes"] > 0
    persistent_product(kernels)
    asked: list[tuple[int, int, int]] = []

    def allocate(size: int, alignment: int, stream: int, device: int) -> torch.Tensor:
        asked.append((size, alignment, device))
        return torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")

    kernels.set_allocator(allocate)
    try:
        persistent_product(kernels)
    finally:
        kernels.set_allocator(None)
    assert len(asked) == 1 and asked[0][0] > 0 and asked[0][2] == torch.cuda.current_device(), asked


def check_scratch_inside_a_graph(kernels: Any, kit: Path) -> None:
    a, b = (torch.randn(256, 256, device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.zeros(256, 256, device="cuda", dtype=torch.float16)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernels.matmul_persistent(out, a, b, 256, 256, 256, 256, 256, 256, 64)
    for _ in range(2):
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(out.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-1)


def check_cluster(kernels: Any, kit: Path) -> None:
    assert facts_of(kit, "cluster_sum")["num_ctas"] == 2
    x = torch.rand(33, 9000, device="cuda")
    out = torch.zeros(33, device="cuda")
    kernels.cluster_sum(out, x, 9000, 33, 9000)
    torch.testing.assert_close(out, x.sum(1), rtol=1e-4, atol=1e-3)


def check_cooperative(kernels: Any, kit: Path) -> None:
    assert facts_of(kit, "grid_normalize")["cooperative"]
    x = torch.rand(100_003, device="cuda")
    out, total = torch.zeros_like(x), torch.zeros(1, device="cuda")
    arrived = torch.zeros(1, device="cuda", dtype=torch.int32)
    kernels.grid_normalize(out, x, total, arrived, x.numel(), 64)
    torch.testing.assert_close(out, x / x.sum(), rtol=1e-3, atol=1e-9)


def check_dependent_launches(kernels: Any, kit: Path) -> None:
    assert facts_of(kit, "dependent_scale")["pdl"]
    first = torch.rand(1 << 20, device="cuda")
    x, out = first.clone(), torch.empty_like(first)
    for _ in range(20):
        kernels.dependent_scale(out, x, 1.5, x.numel())
        x, out = out, x
    torch.testing.assert_close(x, first * 1.5**20, rtol=1e-4, atol=0)


def check_tensor_descriptors(kernels: Any, kit: Path) -> None:
    assert facts_of(kit, "tile_copy")["tensor_descriptors"][0]["tma"]
    from triton.tools.tensor_descriptor import TensorDescriptor

    for rows, columns in ((100, 80), (32, 64), (1, 4096)):
        x = torch.randn(rows, columns, device="cuda", dtype=torch.float16)
        for describe in (lambda t: t, lambda t: TensorDescriptor.from_tensor(t, [32, 64])):
            out = torch.zeros_like(x)
            kernels.tile_copy(describe(out), describe(x), rows, columns)
            assert torch.equal(out, x)


def check_every_scalar(kernels: Any, kit: Path) -> None:
    integers = torch.zeros(9, dtype=torch.int64, device="cuda")
    floats = torch.zeros(4, dtype=torch.float64, device="cuda")
    pointed = torch.zeros(1, dtype=torch.int32, device="cuda")
    kernels.echo_scalars(integers, floats, True, -2, -300, -70000, -(2**40), 200, 60000, 4 * 10**9, 2**64 - 1, 0.1, 0.1,
                         0.1, 0.1, (-5, pointed))  # fmt: skip
    assert integers.tolist()[1:8] == [-2, -300, -70000, -(2**40), 200, 60000, 4 * 10**9], integers
    assert integers.tolist()[8] == -1 and integers.tolist()[0] != 0
    expected = [torch.tensor(0.1, dtype=kind).item() for kind in (torch.float16, torch.bfloat16, torch.float32)]
    assert floats.tolist() == [*expected, 0.1] and pointed.item() == -5


def check_threads(kernels: Any, kit: Path) -> None:
    kernels.unload()
    failures: list[str] = []

    def work() -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(30):
                    softmax(kernels)
        except Exception:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def check_second_device(kernels: Any, kit: Path) -> str | None:
    if torch.cuda.device_count() < 2:
        return "this machine has one device"
    softmax(kernels, "cuda:1")
    assert torch.cuda.current_device() == 0
    softmax(kernels, "cuda:0")
    with torch.cuda.device(1):
        softmax(kernels, "cuda:1")
        persistent = torch.rand(4, 1000, device="cuda:1")
        assert persistent.device.index == 1
    x, out = torch.rand(4, 1000, device="cuda:1"), torch.rand(4, 1000, device="cuda:0")
    message = refusal(kernels, lambda: kernels.softmax(out, x, 1000, 4, 1000, BLOCK=1024), ValueError)
    assert message == "argument `x` of `softmax` is on cuda:1, and `out` is on cuda:0", message
    launch_in_a_new_thread(kernels, "cuda:1")
    return None


def check_a_thread_without_a_context(kernels: Any, kit: Path) -> None:
    launch_in_a_new_thread(kernels, "cuda:0")


def launch_in_a_new_thread(kernels: Any, device: str) -> None:
    """The launch finds the tensors' device and leaves the thread without one, as it was."""
    x = torch.rand(4, 1000, device=device)
    out = torch.empty_like(x)
    torch.cuda.synchronize(device)
    contexts = in_a_new_thread(lambda: kernels.softmax(out, x, 1000, 4, 1000, BLOCK=1024))
    assert contexts == [None, None], contexts
    torch.cuda.synchronize(device)
    torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)


def in_a_new_thread(call: Callable[[], object]) -> list[int | None]:
    """The thread's current context before and, where the call raised nothing, after it."""
    driver, seen = ctypes.CDLL("libcuda.so.1"), []

    def work() -> None:
        context = ctypes.c_void_p()
        driver.cuCtxGetCurrent(ctypes.byref(context))
        seen.append(context.value)
        call()
        driver.cuCtxGetCurrent(ctypes.byref(context))
        seen.append(context.value)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return seen


def refusal(kernels: Any, call: Callable[[], object], kind: type[Exception] | None = None) -> str:
    expected: type[Exception] = kind or kernels.LaunchError
    try:
        call()
    except expected as error:
        return str(error)
    raise AssertionError("nothing was refused")


def check_refusals(kernels: Any, kit: Path) -> None:
    x = torch.rand(4, 1000, device="cuda")
    out = torch.empty(4001, device="cuda")[1:]
    message = refusal(kernels, lambda: kernels.softmax(out, x, 1000, 4, 1000, BLOCK=1024))
    assert message.startswith("argument `out` of `softmax` promises align = 16, and its address is 0x"), message
    message = refusal(kernels, lambda: kernels.softmax(x, x, 1000, 4, 1000, BLOCK=77))
    assert message == "`softmax` has no variant with BLOCK=77; there are 1024, 4096", message
    mixed = torch.rand(4, 1000)
    message = refusal(kernels, lambda: kernels.softmax(x, mixed, 1000, 4, 1000, BLOCK=1024), ValueError)
    assert message == "argument `x` of `softmax` is on cpu:0, and `out` is on cuda:0", message
    softmax(kernels)


def check_cupy(kernels: Any, kit: Path) -> str | None:
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    x = cupy.random.rand(64, 1000, dtype=cupy.float32)
    out = cupy.empty_like(x)
    with cupy.cuda.Stream() as stream:
        kernels.softmax(out, x, 1000, 64, 1000, BLOCK=1024)
        stream.synchronize()
    expected = torch.softmax(torch.from_dlpack(x), 1)
    torch.testing.assert_close(torch.from_dlpack(out), expected, rtol=1e-5, atol=1e-7)
    return None


def check_jax(kernels: Any, kit: Path) -> str | None:
    code = f"""
import sys; sys.path.insert(0, {str(kit / "release/python")!r})
import os; os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
try:
    import jax, jax.numpy as jnp
    x = jax.device_put(jnp.arange(64000, dtype=jnp.float32).reshape(64, 1000) % 7, jax.devices("gpu")[0])
except Exception as error:
    print("SKIP", type(error).__name__); sys.exit()
import kernels, numpy
out = jnp.zeros_like(x).block_until_ready(); x.block_until_ready()
kernels.softmax(out, x, 1000, 64, 1000, BLOCK=1024)
import ctypes; ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()
numpy.testing.assert_allclose(numpy.asarray(out), numpy.asarray(jax.nn.softmax(x, 1)), rtol=1e-4, atol=1e-6)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.stdout.startswith("SKIP"):
        return f"JAX does not run here: {done.stdout.split()[1]}"
    assert done.returncode == 0, done.stderr[-2000:]
    return None


def check_unload_and_load_again(kernels: Any, kit: Path) -> None:
    softmax(kernels)
    torch.cuda.synchronize()
    assert any(unit["loaded"] for unit in kernels.query())
    kernels.unload()
    assert not any(unit["loaded"] for unit in kernels.query())
    kernels.preload("softmax")
    loaded = [unit["unit"] for unit in kernels.query() if unit["loaded"]]
    assert loaded and all(text.startswith("softmax:") and text.endswith("@cuda:90") for text in loaded), loaded
    softmax(kernels)


def check_selfcheck(kernels: Any, kit: Path) -> None:
    kernels.selfcheck()


def check_empty_grid(kernels: Any, kit: Path) -> None:
    x = torch.full((4, 1000), 7.0, device="cuda")
    kernels.softmax(x, x, 1000, 0, 1000, BLOCK=1024)
    torch.cuda.synchronize()
    assert bool((x == 7).all())


def check_calls_of_triton_are_served(kernels: Any, kit: Path) -> str | None:
    """An untouched `kernel[grid](…)` of the Triton here runs from the release; one without a variant is refused."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return "this machine has no Triton"
    sys.path.insert(0, str(kit / "sources"))
    from softmax import softmax_kernel

    x = torch.rand(64, 1000, device="cuda")
    out = torch.empty_like(x)
    with kernels.serve(fallback="error"):
        softmax_kernel[(64,)](out, x, x.stride(0), 64, 1000, BLOCK=1024, num_warps=8)
        torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)
        try:
            softmax_kernel[(64,)](out, x, x.stride(0), 64, 1000, BLOCK=512, num_warps=8)
        except RuntimeError as error:
            assert "BLOCK = 512" in str(error), error
        else:
            raise AssertionError("a variant that the release does not have ran")
    return None


def check_buffer_of_a_pass(kernels: Any, kit: Path) -> None:
    """What a pass counts in device memory comes back: one element of the last program is outside."""
    sys.path.insert(0, str(kit / "pass_release" / "python"))
    import counted

    seen: list[tuple[Any, ...]] = []
    counted.set_buffer_reader(lambda *values: seen.append(values))
    x, out = torch.rand(300, device="cuda"), torch.zeros(301, device="cuda")
    counted.shift(out, x, 300)
    ((unit, name, data, each, programs),) = seen
    assert (unit, name, each, programs) == ("shift@cuda:90", "bounds-check", 8, 3), seen
    counts = [int.from_bytes(data[place : place + 4], "little") for place in range(0, len(data), 4)]
    assert counts == [0, 0, 0, 0, 0, 1], counts
    assert out[300] == 0 and bool((out[1:300] == x[:299]).all())


def run_checks(kit: Path) -> dict[str, str]:
    """Results by name, in the order of this file."""
    sys.path.insert(0, str(kit / "release" / "python"))
    import kernels

    results = {}
    for name, check in list(globals().items()):
        if not name.startswith("check_"):
            continue
        try:
            reason = check(kernels, kit)
            torch.cuda.synchronize()
            results[name.removeprefix("check_")] = f"does not apply: {reason}" if reason else "ok"
        except Exception:
            results[name.removeprefix("check_")] = traceback.format_exc()
    return results


def main() -> int:
    results = run_checks(Path(sys.argv[1]).resolve())
    for name, result in results.items():
        print(f"{name}: {result}")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(results, indent=1))
    return 0 if all(result == "ok" or result.startswith("does not") for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
