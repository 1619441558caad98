"""Signatures read from sources with `ast`: every form that kernels come in, without importing one."""

from pathlib import Path

import pytest

from precast.errors import SpecError
from precast.spec.decorators import Config
from precast.spec.model import Spelled
from precast.spec.signature import Parameter, UnreadSignature, read_signature
from precast.spec.sources import SourceReader, absolute_name, is_function_text
from precast.spec.syntax import parse_source
from precast.spec.toml import parse_document

LOADING = Path(__file__).parents[1] / "fixtures" / "loading"
HEAD = "import triton\nimport triton.language as tl\n"


def read(source, name="kernel", others=None):
    modules = {dotted: parse_source(text.encode(), f"{dotted}.py") for dotted, text in (others or {}).items()}
    module = parse_source(source.encode(), "k.py")
    return read_signature(module, name, lambda importer, dotted, wanted: modules.get(dotted))


@pytest.mark.parametrize(
    "annotation",
    ["tl.constexpr", '"tl.constexpr"', "constexpr", "triton.language.constexpr", "gl.constexpr", "ttgl.constexpr"],
)
def test_every_way_to_write_constexpr(annotation):
    signature = read(HEAD + f"@triton.jit\ndef kernel(x, B: {annotation}): pass")
    assert signature.parameters == (Parameter("x", False), Parameter("B", True))


ALIASES = {
    "imported": "from triton.language import constexpr as CE",
    "assigned": "CE = tl.constexpr",
    "assigned in two steps": "A = tl.constexpr\nCE = A",
    "assigned with a type": "from typing import TypeAlias\nCE: TypeAlias = tl.constexpr",
    "from the project": "from shared import CE",
    "renamed on the way": "from shared import D as CE",
}
SHARED = {"shared": "import triton.language as tl\nCE = tl.constexpr\nfrom triton.language import constexpr as D\n"}


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_constexpr_by_another_name(alias):
    signature = read(HEAD + alias + "\n@triton.jit\ndef kernel(x, B: CE): pass", others=SHARED)
    assert signature.parameters == (Parameter("x", False), Parameter("B", True))


@pytest.mark.parametrize(
    ("made", "annotation"),
    [
        ("CE = getattr(tl, 'constexpr')", "CE"),
        ("class Types:\n    CE = tl.constexpr", "Types.CE"),
        ("types = Namespace(CE=tl.constexpr)", "types.CE"),
        ("for CE in (tl.constexpr,): pass", "CE"),
        ("from made import CE", "CE"),
    ],
)
def test_constexpr_that_only_an_import_can_tell(made, annotation):
    others = {"made": "import triton.language as tl\nCE, _ = tl.constexpr, 1"}
    with pytest.raises(UnreadSignature):
        read(HEAD + made + f"\n@triton.jit\ndef kernel(x, B: {annotation}): pass", others=others)


def test_an_annotation_that_is_made_of_something_else_is_read():
    made = "from typing import TypeVar\nT = TypeVar('T')\n"
    assert not read(HEAD + made + "@triton.jit\ndef kernel(x: T, B: tl.constexpr): pass").parameters[0].constexpr


def test_constexpr_through_a_module_of_the_project():
    signature = read(HEAD + "import shared\n@triton.jit\ndef kernel(x, B: shared.CE): pass", others=SHARED)
    assert signature.parameters[1].constexpr


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "CE = tl.constexpr\n@triton.jit\ndef kernel(x, B: 'CE'): pass",
        "from __future__ import annotations\n" + HEAD + "CE = tl.constexpr\n@triton.jit\ndef kernel(x, B: CE): pass",
    ],
)
def test_an_alias_in_a_text_is_none_for_triton(text):
    assert not read(text).parameters[1].constexpr


JITS = {
    "imported": "from triton import jit as J",
    "assigned": "J = triton.jit",
    "from the project": "from shared import J",
}


@pytest.mark.parametrize("alias", JITS.values(), ids=JITS)
@pytest.mark.parametrize("use", ["J", "J(debug=True)"])
def test_jit_by_another_name(alias, use):
    shared = {"shared": "import triton\nJ = triton.jit\n"}
    assert read(HEAD + f"{alias}\n@{use}\ndef kernel(x): pass", others=shared).parameters == (Parameter("x", False),)


def test_a_kernel_that_comes_with_all_of_a_module():
    others = {"impl": HEAD + "@triton.jit\ndef kernel(y): pass", "pack": "from impl import *\n"}
    assert read("from pack import *\n", others=others).parameters == (Parameter("y", False),)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("@own\ndef kernel(x): pass", "kernel"),
        ("first, kernel = make()", "kernel"),
        ("kernel = TABLE['a']", "kernel"),
        ("globals()['kernel'] = 1", "kernel"),
        ("from somewhere import *", "kernel"),
        ("for _ in range(1):\n    @triton.jit\n    def kernel(x): pass", "kernel"),
        ("while True:\n    @triton.jit\n    def kernel(x): pass\n    break", "kernel"),
        ("match 1:\n    case _:\n        @triton.jit\n        def kernel(x): pass", "kernel"),
        ("def make():\n    global kernel\n    @triton.jit\n    def kernel(x): pass\nmake()", "kernel"),
        ("import sys\nsetattr(sys.modules[__name__], 'kernel', 1)", "kernel"),
        ("def __getattr__(name): return 1", "kernel"),
        ("class Kernels: pass", "Kernels.kernel"),
        ("def make(): pass", "make(64)"),
    ],
)
def test_what_only_an_import_can_tell(text, name):
    with pytest.raises(UnreadSignature):
        read(HEAD + text, name)


@pytest.mark.parametrize("text", ["def kernel(x): pass", "other = 1"])
def test_what_no_import_needs_to_tell(text):
    with pytest.raises(SpecError) as caught:
        read(HEAD + text)
    assert not isinstance(caught.value, UnreadSignature)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("kernel", True), ("Kernels.add", True), ("make(64, name='x')", True), ("Kernels.make(a.b)", True),
        ("", False), ("a-b", False), ("a b", False), ("f()()", False), ("TABLE['a']", False), (" kernel", False),
    ],
)  # fmt: skip
def test_texts_that_name_a_function(text, named):
    assert is_function_text(text) == named


def test_annotations_that_are_no_constexpr():
    assert not read(HEAD + "@triton.jit\ndef kernel(n: tl.int32): pass").parameters[0].constexpr


@pytest.mark.parametrize(
    ("default", "value", "text"),
    [
        ("128", 128, ""),
        ("-1", -1, ""),
        ("1e-5", 1e-5, ""),
        ("True", True, ""),
        ("None", None, ""),
        ('"relu"', "relu", ""),
        ("tl.float32", "tl.float32", ""),
        ("G", "tl.float16", ""),
        ("F", None, "F"),
        ("tl.constexpr(4)", 4, ""),
        ("SIZE", 64, ""),
        ("2 * SIZE", None, "2 * SIZE"),
        ("pick()", None, "pick()"),
        ("(1, 2)", Spelled("(1,2)"), ""),
        ("((1, None), -0.0)", Spelled("((1,none),-0.0)"), ""),
        ("2 ** 70", None, "2 ** 70"),
        ("[1, 2]", None, "[1, 2]"),
        ("18446744073709551616", Spelled("18446744073709551616"), ""),
        ('"tl.float32"', None, "'tl.float32'"),
    ],
)
def test_defaults(default, value, text):
    more = "from triton.language import float32 as F, float16 as G\nif True:\n    F = tl.float64\nSIZE = 64\n"
    signature = read(HEAD + f"{more}@triton.jit\ndef kernel(x, B: tl.constexpr = {default}): pass")
    assert signature.parameters[1] == Parameter("B", True, True, value, text)


def test_keyword_only_and_positional_only_parameters():
    signature = read(HEAD + "@triton.jit\ndef kernel(x, /, n=3, *, B: tl.constexpr = 4, C: tl.constexpr): pass")
    assert [(each.name, each.has_default) for each in signature.parameters] == [
        ("x", False), ("n", True), ("B", True), ("C", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "gluon"),
    [
        ("from triton import jit\n@jit\ndef kernel(x): pass", False),
        ("import triton as t\n@t.jit(noinline=True)\ndef kernel(x): pass", False),
        ("from triton.experimental import gluon\n@gluon.jit\ndef kernel(x): pass", True),
        ("from triton.experimental.gluon import jit\n@jit\ndef kernel(x): pass", True),
        ("import triton.experimental.gluon as g\n@g.jit(do_not_specialize=['x'])\ndef kernel(x): pass", True),
        (HEAD + "if True:\n    @triton.jit\n    def kernel(x): pass", False),
        (HEAD + "try:\n    import fast\nexcept ImportError:\n    @triton.jit\n    def kernel(x): pass", False),
        (HEAD + "def plain(x): pass\nkernel = triton.jit(plain)", False),
        (HEAD + "def plain(x): pass\nkernel = triton.jit(noinline=True)(plain)", False),
        (HEAD + "@triton.jit\ndef inner(x): pass\nkernel = inner", False),
        (HEAD + "@triton.jit\ndef inner(x): pass\nkernel: object = inner", False),
        (HEAD + "def make():\n    @triton.jit\n    def inner(x): pass\n    return inner\nkernel = make()", False),
        (HEAD + "def make():\n    def inner(x): pass\n    return triton.jit(inner)\nkernel = make()", False),
        (
            HEAD + "def make():\n    @triton.jit\n    def other(a, b): pass\n    @triton.jit\n    def inner(x): pass\n"
            "    return inner\nkernel = make()",
            False,
        ),
        (HEAD + "@triton.jit\ndef kernel(a, b): pass\n@triton.jit\ndef kernel(x): pass", False),
    ],
)
def test_forms_of_a_kernel(source, gluon):
    signature = read(source)
    assert [each.name for each in signature.parameters] == ["x"]
    assert signature.gluon is gluon


def test_kernels_and_factories_of_other_modules():
    others = {
        "lib": HEAD
        + "@triton.jit\ndef real(x): pass\ndef make():\n    @triton.jit\n    def inner(y): pass\n    return inner"
    }
    assert read("from lib import real as kernel", others=others).parameters == (Parameter("x", False),)
    assert read("from lib import make\nkernel = make()", others=others).parameters == (Parameter("y", False),)


def test_autotune_and_heuristics():
    signature = read(
        HEAD
        + "@triton.autotune(configs=[triton.Config({'B': 64}, num_warps=2),"
        + "triton.Config(dict(B=128), 8, num_stages=4)], key=['n'])\n@triton.heuristics({'EVEN': lambda a: True})\n"
        + "@triton.heuristics(values={'WIDE': lambda a: True})\n@triton.jit\n"
        + "def kernel(x, n, B: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr): pass"
    )
    assert signature.configs == (
        Config((("B", 64), ("num_warps", 2))),
        Config((("B", 128), ("num_warps", 8), ("num_stages", 4))),
    )
    assert signature.heuristics == ("EVEN", "WIDE")


@pytest.mark.parametrize(
    ("configs", "found"),
    [
        ("CONFIGS", (Config((("B", 64),)),)),
        ("[]", ()),
        ("make()", None),
        ("[triton.Config({'B': b}) for b in (1, 2)]", None),
        ("[triton.Config({'B': pick()})]", None),
        ("[triton.Config(TABLE)]", None),
        ("[triton.Config({**TABLE})]", None),
        ("[triton.Config({'B': 64}, **TABLE)]", None),
        ("[triton.Config({'B': 64}, *TABLE)]", None),
        ("[Config({'B': 64})]", None),
        ("[compiler.Config({'B': 64})]", (Config((("B", 64),)),)),
        ("[other]", None),
    ],
)
def test_configs_that_are_literal_and_that_are_not(configs, found):
    source = HEAD + "from absent import triton as compiler\nfrom mine import Config\n"
    source += "CONFIGS = [triton.Config({'B': 64})]\n"
    source += f"@triton.autotune({configs}, key=[])\n@triton.jit\ndef kernel(B: tl.constexpr): pass"
    assert read(source).configs == found


def test_what_a_tuner_of_another_library_makes_of_its_configs_is_not_known():
    source = HEAD + "from mine import autotune\n@autotune([triton.Config({'B': 64})], key=[])\n"
    assert read(source + "@triton.jit\ndef kernel(B: tl.constexpr): pass").configs is None


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [
        ("def kernel(x): pass", "`kernel` is not a kernel: no @triton.jit decorates it", 1),
        (HEAD + "@triton.jit\ndef kernel(**x): pass", "kernel `kernel` takes arguments by any name: `**x`", 4),
        ("kernel = 3", "cannot tell which function `kernel` is", 1),
        ("kernel = table['a']", "cannot tell which function `kernel` is", 1),
        ("from lib import kernel", "`kernel` comes from module `lib`, which is not found", 1),
        ("kernel = kernel", "cannot tell which function `kernel` is", 1),
    ],
)
def test_what_is_no_kernel(source, message, line):
    with pytest.raises(SpecError) as caught:
        read(source)
    assert (caught.value.message, caught.value.where.line) == (message, line)


@pytest.mark.parametrize(
    ("dotted", "package", "absolute"),
    [
        ("a.b", "p.q", "a.b"),
        (".", "p.q", "p.q"),
        (".a", "p.q", "p.q.a"),
        ("..a.b", "p.q", "p.a.b"),
        ("..", "p.q", "p"),
    ],
)
def test_relative_names(dotted, package, absolute):
    assert absolute_name(dotted, package) == absolute


@pytest.mark.parametrize(
    ("source", "file", "module", "parameters"),
    [
        ("stack.ops.scale:scale_kernel", "src/stack/ops/scale.py", "stack.ops.scale", "x_ptr out_ptr n factor BLOCK"),
        ("model:bias_kernel", "src/model.py", "model", "x_ptr b_ptr out_ptr n_cols BLOCK"),
        ("tuned:tuned_kernel", "src/tuned.py", "tuned", "x_ptr out_ptr n BLOCK EVEN"),
        ("factory:square_kernel", "src/factory.py", "factory", "x_ptr out_ptr n BLOCK"),
        ("factory:doubled_kernel", "src/factory.py", "factory", "x_ptr out_ptr n BLOCK"),
        ("sibling.py:sibling_kernel", "kernels/sibling.py", "", "x_ptr out_ptr n BLOCK"),
        ("globals.py:globals_kernel", "kernels/globals.py", "", "x_ptr out_ptr n BLOCK ADD MODE FLAG NOTHING"),
    ],
)
def test_the_loading_fixtures(source, file, module, parameters):
    node = parse_document(f'source = "{source}"', "k.toml").root.table()["source"]
    found, signature = SourceReader(LOADING, (LOADING / "src",)).read(node, LOADING / "kernels")
    assert (found.file, found.module, found.text) == (file, module, source if module else f"{file}:{found.function}")
    assert [each.name for each in signature.parameters] == parameters.split()
