"""What is set in a user's shell and does nothing in a build is told once."""

from precast.shell import find_ignored
from precast.spec.model import CompileSettings

TRITON = "in the environment: ignored; what may change code is set in [tool.precast.triton]"


def warnings(shell, **settings):
    return list(find_ignored(shell, CompileSettings(**settings)))


def test_what_triton_would_hear():
    assert warnings({"PATH": "", "TRITON_CACHE_DIR": "x", "CUDA_HOME": "", "EDITOR": "vi"}) == []
    shell = {"TRITON_PTXAS_PATH": "x", "PTXAS_OPTIONS": "-O0", "DISABLE_PTXAS_OPT": "1", "MLIR_ENABLE_DUMP": "1"}
    assert warnings(shell) == [f"DISABLE_PTXAS_OPT, MLIR_ENABLE_DUMP, PTXAS_OPTIONS, TRITON_PTXAS_PATH {TRITON}"]


def test_what_the_settings_say_alike_is_heard():
    ours = (("TRITON_F32_DEFAULT", "ieee"),)
    assert warnings({"TRITON_F32_DEFAULT": "ieee"}, environment=ours) == []
    assert warnings({"TRITON_F32_DEFAULT": "tf32"}, environment=ours) == [f"TRITON_F32_DEFAULT {TRITON}"]


def test_what_make_would_hear():
    assert warnings({"CC": "clang", "CFLAGS": "-O3", "LDFLAGS": "", "CXX": "g++"}) == [
        "CC, CFLAGS in the environment: ignored; an SConstruct chooses the C compiler, as `Environment(CC=…)`, and the "
        "flags are fixed"
    ]
