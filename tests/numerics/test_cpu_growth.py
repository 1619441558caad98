"""Compile time grows with the number of ops, whatever their shape; deep and nested kernels end; faults are told."""

import time

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import Compiled, build, make_ttir

from precast.engines import cpu
from precast.engines.cpu import context, statements
from precast.errors import PassError, Place

F, I, P = "tensor<64xf32>", "tensor<64xi32>", "tensor<64x!tt.ptr<f32>>"  # noqa: E741


def binary(name, result, a, b, type_=F):
    return f'%{result} = "{name}"(%{a}, %{b}) : ({type_}, {type_}) -> {type_}'


def store(pointer, value, mask=""):
    operands, types = (f", %{mask}", ", tensor<64xi1>") if mask else ("", "")
    return f'"tt.store"(%{pointer}, %{value}{operands}) : ({P}, {F}{types}) -> ()'


def shared_floats(n):
    """r = c · r · (1 - r), again and again."""
    for k in range(n // 3):
        yield binary("arith.subf", f"a{k}", "one", f"r{k}")
        yield binary("arith.mulf", f"b{k}", f"a{k}", f"r{k}")
        yield binary("arith.mulf", f"r{k + 1}", f"b{k}", "c")
    yield store("q", f"r{n // 3}")


def shared_mask(n):
    """h = h · h + h in a mask."""
    yield binary("arith.addi", "h0", "i", "i", I)
    for k in range(n // 2):
        yield binary("arith.muli", f"g{k}", f"h{k}", f"h{k}", I)
        yield binary("arith.addi", f"h{k + 1}", f"g{k}", f"h{k}", I)
    yield f'%m = "arith.cmpi"(%h{n // 2}, %i) <{{predicate = 2 : i64}}> : ({I}, {I}) -> tensor<64xi1>'
    yield store("q", "r0", "m")


def moved(pointer, k):
    yield f'%k{k} = "arith.constant"() <{{value = dense<{64 * k}> : {I}}}> : () -> {I}'
    yield f'%{pointer}{k} = "tt.addptr"(%{pointer}, %k{k}) : ({P}, {I}) -> {P}'


def stores(n):
    for k in range(n // 4):
        yield from moved("q", k)
        yield binary("arith.mulf", f"r{k + 1}", f"r{k}", "c")
        yield store(f"q{k}", f"r{k + 1}")


def loads(n):
    for k in range(n // 4):
        yield from moved("p", k)
        yield f'%l{k} = "tt.load"(%p{k}) <{{isVolatile = false}}> : ({P}) -> {F}'
        yield binary("arith.addf", f"r{k + 1}", f"r{k}", f"l{k}")
    yield store("q", f"r{n // 4}")


def branches(n):
    for k in range(n // 4):
        yield f'%r{k + 1} = "scf.if"(%cond) ({{'
        yield binary("arith.mulf", f"x{k}", f"r{k}", "c")
        yield f'"scf.yield"(%x{k}) : ({F}) -> ()'
        yield f'}}, {{\n"scf.yield"(%r{k}) : ({F}) -> ()\n}}) : (i1) -> {F}'
    yield store("q", f"r{n // 4}")


def carried(n):
    """A loop that carries n tensors."""
    yield f'%z:{n} = "scf.for"(%zero, %n, %step{", %r0" * n}) ({{'
    yield f"^bb0(%k: i32, {', '.join(f'%y{k}: {F}' for k in range(n))}):"
    yield from (binary("arith.mulf", f"x{k}", f"y{k}", "c") for k in range(n))
    yield f'"scf.yield"({", ".join(f"%x{k}" for k in range(n))}) : ({", ".join([F] * n)}) -> ()'
    yield f"}}) : (i32, i32, i32{f', {F}' * n}) -> ({', '.join([F] * n)})"
    yield store("q", f"z#{n - 1}")


FORMS = [shared_floats, shared_mask, stores, loads, branches]


def text_of(form, n):
    load = f'%r0 = "tt.load"(%p) <{{isVolatile = false}}> : ({P}) -> {F}'
    body = "\n".join(form(n))
    return f""""builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", sym_visibility = "public"}}> ({{
  ^bb0(%o: !tt.ptr<f32>, %x: !tt.ptr<f32>, %n: i32):
    %one = "arith.constant"() <{{value = dense<1.0> : {F}}}> : () -> {F}
    %c = "arith.constant"() <{{value = dense<3.7> : {F}}}> : () -> {F}
    %i = "tt.make_range"() <{{end = 64 : i32, start = 0 : i32}}> : () -> {I}
    %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %step = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %cond = "arith.cmpi"(%n, %zero) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
    %ps = "tt.splat"(%x) : (!tt.ptr<f32>) -> {P}
    %p = "tt.addptr"(%ps, %i) : ({P}, {I}) -> {P}
    %qs = "tt.splat"(%o) : (!tt.ptr<f32>) -> {P}
    %q = "tt.addptr"(%qs, %i) : ({P}, {I}) -> {P}
    {load}
    {body}
    "tt.return"() : () -> ()
  }}) {{noinline = false}} : () -> ()
}}) : () -> ()
"""


def seconds(form, n, whole):
    """Processor time of the `loops` stage for each op, or of all stages."""
    text, start = text_of(form, n), time.process_time()
    loops = cpu.lower_ttir(text, "x86-64-v3")
    if whole:
        cpu.emit_object(cpu.lower_loops(loops, "x86-64-v3"), "x86-64-v3", "k")
    return (time.process_time() - start) / n


@pytest.mark.parametrize("form", [*FORMS, carried])
def test_the_loops_stage_takes_as_long_for_each_op_of_many(form):
    few = max(seconds(form, 10, False), seconds(form, 100, False))
    # A square would be 10 times as much; a busy machine makes twice as much of the same work.
    assert any(seconds(form, 1000, False) < 4 * few for _ in range(3))


@pytest.mark.all
@pytest.mark.parametrize("form", FORMS)
def test_all_stages_take_as_long_for_each_op_of_many(form):
    few = max(seconds(form, 100, True), seconds(form, 200, True))
    assert any(seconds(form, 5000, True) < 4 * few for _ in range(2))


def test_a_long_kernel_is_many_functions():
    text = cpu.lower_ttir(text_of(stores, 1000), "x86-64-v3")
    functions = text.split("func.func private")
    assert len(functions) > 4
    assert max(each.count("\n") for each in functions) < 2000


@triton.jit
def parts_kernel(out, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    total, p = 0, out
    for k in tl.static_range(4):
        if n > k:
            total, least = total + tl.sum(v, 0), tl.min(v, 0)
        else:
            total, least = total - k, k
        for _ in range(n):
            total, least = least, total + 1
        v = tl.sort(v + least)
        tl.store(p + i, v * total)
        p += N


def test_what_a_part_computes_is_known_to_later_ones(monkeypatch):
    """Scalars, several results of one op, buffers and pointers cross from one function to another."""
    monkeypatch.setattr(context, "_LONGEST_PART", 20)
    types = {"out": "*i32", "x": "*i32", "n": "i32"}
    kernel = Compiled(make_ttir(parts_kernel, types, {"N": 16}), list(types.values()))
    assert kernel.loops.count("func.func private") > 5
    for n in (0, 3, 7):
        v = np.random.default_rng(n).integers(-9, 9, 16).astype(np.int32)
        out, expected = np.zeros((4, 16), np.int32), np.zeros((4, 16), np.int32)
        kernel((1,), out, v, n)
        total, v = 0, v.copy()
        for k in range(4):
            total, least = (total + v.sum(), v.min()) if n > k else (total - k, k)
            for _ in range(n):
                total, least = least, total + 1
            v = np.sort(v + np.int32(least))
            expected[k] = v * np.int32(total)
        assert np.array_equal(out, expected), n


def test_carried_tensors_begin_in_one_nest():
    loops = [cpu.lower_ttir(text_of(carried, n), "x86-64-v3").count("scf.for") for n in (2, 40)]
    assert loops[0] == loops[1]


@pytest.mark.parametrize("depth", [10, 60])
def test_nested_branches(depth):
    def nest(n):
        yield from ['"scf.if"(%cond) ({'] * n
        yield store("q", "r0")
        yield from ['"scf.yield"() : () -> ()\n}, {\n}) : (i1) -> ()'] * n

    cpu.emit_object(cpu.lower_loops(cpu.lower_ttir(text_of(nest, depth), "x86-64-v3"), "x86-64-v3"), "x86-64-v3", "k")


@triton.jit
def chain_kernel(out, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    for _ in tl.static_range(300):
        a = a * 0.5 + n
    tl.store(out + i, a)


def test_a_long_chain():
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    build(chain_kernel, {"out": "*fp32", "x": "*fp32", "n": "i32"}, {"N": 64})((1,), out, x, 3)
    assert np.all(out == 6)


@triton.jit
def _scaled(a, n):
    if n > 5:
        return a * 3
    if n > 0:
        if n == 2:
            return a - 1
        a = a * 2
    return a + tl.sum(a, 0)


@triton.jit
def helper_kernel(out, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for _ in range(2):
        v = _scaled(v, n)
    tl.store(out + i, v)


def test_a_helper_that_returns_early_on_a_block():
    kernel = build(helper_kernel, {"out": "*i32", "x": "*i32", "n": "i32"}, {"N": 64})
    for n in (-1, 0, 1, 2, 3, 6):
        v = np.arange(64, dtype=np.int32)
        out = np.zeros(64, np.int32)
        kernel((1,), out, v, n)
        for _ in range(2):
            w = v * 2 if n > 0 else v
            v = v * 3 if n > 5 else v - 1 if n == 2 else w + w.sum(dtype=np.int32)
        assert np.array_equal(out, v), n


@triton.jit
def exits_kernel(out, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.sort(a)
    if n < 0:
        tl.store(out + i, a)
        return
    c = b + tl.cumsum(a, 0)
    if n == 5:
        return
    tl.store(out + i, b + c)


def test_tensors_between_blocks_of_early_returns():
    kernel = build(exits_kernel, {"out": "*i32", "x": "*i32", "n": "i32"}, {"N": 64})
    x = np.random.default_rng(3).integers(-99, 99, 64).astype(np.int32)
    for n, expected in [(-1, x), (5, np.zeros(64)), (0, 2 * np.sort(x) + np.cumsum(x))]:
        out = np.zeros(64, np.int32)
        kernel((1,), out, x, n)
        assert np.array_equal(out, expected), n


@triton.jit
def inside_kernel(out, x, n, FORM: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i) * 2
    if n > 0:
        if FORM == "sort":
            w = tl.sort(v)
        elif FORM == "gather":
            w = tl.gather(v, (i + 1) % N, 0)
        elif FORM == "reshape":
            w = tl.reshape(tl.trans(tl.reshape(v, [N // 8, 8])), [N])
        elif FORM == "topk":
            w = tl.reshape(tl.join(tl.topk(v, N // 2), tl.topk(v, N // 2)), [N])
        tl.store(out + i, w)
    else:
        tl.store(out + i, v)
    tl.store(out + N + i, tl.gather(v, N - 1 - i, 0))


@pytest.mark.parametrize("form", ["sort", "gather", "reshape", "topk"])
def test_ops_with_buffers_inside_a_branch(form):
    kernel = build(inside_kernel, {"out": "*i32", "x": "*i32", "n": "i32"}, {"FORM": form, "N": 64})
    x = np.random.default_rng(5).permutation(64).astype(np.int32)
    v = x * 2
    inside = {"sort": np.sort(v), "gather": np.roll(v, -1), "reshape": v.reshape(8, 8).T.ravel(),
              "topk": np.repeat(np.sort(v)[::-1][:32], 2)}[form]  # fmt: skip
    for n, expected in [(1, inside), (0, v)]:
        out = np.zeros(128, np.int32)
        kernel((1,), out, x, n)
        assert np.array_equal(out[:64], expected), n
        assert np.array_equal(out[64:], v[::-1])


@triton.jit
def _larger(a, b):
    if a > b:
        return a
    else:
        return b


@triton.jit
def region_kernel(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.map_elementwise(_larger, v, v * 0 + 3))
    tl.store(out + N, tl.reduce(v, 0, _larger))


def test_regions_that_branch():
    x = np.random.default_rng(5).integers(-9, 9, 64).astype(np.int32)
    out = np.zeros(65, np.int32)
    build(region_kernel, {"out": "*i32", "x": "*i32"}, {"N": 64})((1,), out, x)
    assert np.array_equal(out, [*np.maximum(x, 3), x.max()])


def test_a_fault_of_the_engine_is_a_failure_of_the_kernel_at_its_line(monkeypatch):
    def forget(kernel, operation):
        return kernel.context.places[operation]

    monkeypatch.setitem(statements._LOWERINGS, "tt.store", forget)
    line = store("q", "r0") + ' loc("k.py":7:5)'
    with pytest.raises(PassError) as caught:
        cpu.lower_ttir(text_of(lambda _: [line], 0), "x86-64-v3")
    assert caught.value.where == Place("k.py", 7, 5)
    assert caught.value.message.startswith("a fault of Precast's own, in the CPU engine\nTraceback")
    assert caught.value.message.endswith("KeyError: <tt.store>")
