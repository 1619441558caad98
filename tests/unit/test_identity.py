"""Identities: installed packages by the bytes that would be imported, our own parts by what they import."""

import os
import sys
from pathlib import Path

import pytest

from precast.digest import FileDigests
from precast.identity import Identities, merge_tools, select_tools
from precast.identity.installed import NOT_INSTALLED, InstalledPart, identify_part, list_files
from precast.identity.own import digest_own, reach_modules
from precast.identity.tools import _OWN_STARTS, MAKERS, _find_part, stage_tools
from precast.target import Target

SAMPLE = InstalledPart("sample", "sample", ("sample",), lambda file: file.startswith("sample/"))


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def identify(part=SAMPLE):
    return identify_part(part, list_files("sample"), FileDigests())


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package as pip leaves it, with a record of its files that tells of other bytes than are there."""
    monkeypatch.syspath_prepend(str(tmp_path))
    write(tmp_path, {"sample/__init__.py": "1", "sample/lib.so": "2", "sample/readme.txt": "3", "sample/b.py": "4"})
    record = "sample/lib.so,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,1\n"
    metadata = "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n"
    write(tmp_path, {"sample-1.0.dist-info/METADATA": metadata, "sample-1.0.dist-info/RECORD": record})
    return tmp_path


def test_an_installed_package_is_known_by_its_bytes_not_by_its_record(installed):
    first = identify()
    assert first.startswith("1.0 ")
    library = installed / "sample/lib.so"
    status = library.stat()
    library.write_text("5")
    os.utime(library, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert identify() != first
    library.write_text("2")
    assert identify() == first
    (installed / "sample/readme.txt").write_text("nothing that could be code")
    assert identify() == first
    (installed / "sample/b.py").rename(installed / "sample/c.py")
    assert identify() != first


def test_an_editable_install_is_known_by_where_it_leads(installed, tmp_path_factory, monkeypatch):
    first = identify()
    elsewhere = tmp_path_factory.mktemp("checkout")
    write(elsewhere, {"sample/__init__.py": "other"})
    monkeypatch.syspath_prepend(str(elsewhere))
    assert identify() != first


def test_what_is_not_installed():
    part = InstalledPart("none", "none", ("no_such_package",), lambda file: True)
    assert identify_part(part, list_files("no_such_package"), FileDigests()) == NOT_INSTALLED


def test_no_tool_is_imported_to_be_identified():
    before = set(sys.modules)
    Identities(FileDigests()).tools(Target.parse("hip:gfx942"))
    assert not {"triton", "mlir", "llvmlite"} & (set(sys.modules) - before)


def test_our_own_parts_are_closed_under_imports_and_data(tmp_path, monkeypatch):
    import precast

    root = tmp_path / "precast"
    files = {
        "precast/__init__.py": "",
        "precast/one.py": "def f():\n    from precast.two import name\n",
        "precast/two/__init__.py": "",
        "precast/two/inner.py": "",
        "precast/two/data/text.j2": "a",
        "precast/other.py": "import precast.one\n",
    }
    write(tmp_path, files)
    monkeypatch.setattr(precast, "__file__", str(root / "__init__.py"))
    reached = reach_modules(["precast.one"], root, FileDigests())
    names = {path.relative_to(tmp_path).as_posix() for path in reached}
    assert names == {"precast/__init__.py", "precast/one.py", "precast/two/__init__.py"}
    first = digest_own(["precast.one"], FileDigests())
    for changes, name in ((False, "precast/other.py"), (False, "precast/two/inner.py"), (True, "precast/one.py"),
                          (True, "precast/two/data/text.j2")):  # fmt: skip
        before = (tmp_path / name).read_text()
        (tmp_path / name).write_text(before + "# changed\n")
        assert (digest_own(["precast.one"], FileDigests()) != first) == changes, name
        (tmp_path / name).write_text(before)


def test_engines_do_not_count_for_one_another():
    from precast.identity.tools import ENGINES

    root = Path(sys.modules["precast"].__file__).parent
    reached = {name: reach_modules([module], root, FileDigests()) for name, module in ENGINES.items()}
    bridge, dot = root / "engines/triton/bridge.py", root / "engines/cpu/dot.py"
    assert bridge in reached["triton"] and bridge in reached["cpu"] and bridge not in reached["stand-in"]
    assert dot in reached["cpu"] and dot not in reached["triton"]
    assert root / "codec.py" in reached["stand-in"]


def test_what_makes_keys_and_releases_counts_for_all():
    root = Path(sys.modules["precast"].__file__).parent
    for starts in _OWN_STARTS.values():
        assert {root / "worker/walk.py", root / "worker/fixed.py"} <= reach_modules(starts, root, FileDigests())
    makers = {root / each for each in ("passes/probe.py", "launch/sources.py", "release/contents.py")}
    assert makers <= reach_modules(MAKERS, root, FileDigests())


def test_a_stage_meets_the_tools_that_it_runs():
    every = (("llvmlite", "1"), ("mlir", "2"), ("precast", "3"), ("precast.cpu", "4"), ("ptxas", "5"), ("triton", "6"))

    def names(target, stage, python_pass=False):
        found = select_tools(every, Target.parse(target), stage, python_pass=python_pass)
        return [name for name, _ in found]

    assert names("cuda:90", "ttir") == ["precast", "triton"]
    assert names("cuda:90", "ttgir", python_pass=True) == ["mlir", "precast", "triton"]
    assert names("cuda:90", "ptx") == names("cuda:90", "cubin") == ["precast", "ptxas", "triton"]
    assert names("hip:gfx942", "hsaco") == ["precast", "triton"]
    assert names("cpu:x86-64-v3", "ttir") == ["precast", "triton"]
    assert names("cpu:x86-64-v3", "loops") == ["mlir", "precast.cpu"]
    assert names("cpu:x86-64-v3", "obj") == ["llvmlite", "mlir", "precast.cpu"]


FILES = (
    "triton/_C/libtriton.so", "triton/__init__.py", "triton/language/core.py", "triton/profiler/proton.py",
    "triton/backends/nvidia/compiler.py", "triton/backends/nvidia/lib/libdevice.10.bc",
    "triton/backends/nvidia/bin/ptxas", "triton/backends/nvidia/bin/ptxas-blackwell",
    "triton/backends/amd/compiler.py", "mlir/ir.py", "llvm/lib/libLLVM.so", "llvm/lib/libLTO.so",
    "llvmlite/binding/ffi.py", "llvmlite/ir/types.py",
)  # fmt: skip


def test_a_tool_is_the_files_that_can_change_code():
    def made_of(name, target="cuda:90"):
        part = _find_part(name, Target.parse(target))
        return {file for file in FILES if file.partition("/")[0] in part.packages and part.is_part(file)}

    of_all = {"triton/_C/libtriton.so", "triton/__init__.py", "triton/language/core.py"}
    nvidia = {"triton/backends/nvidia/compiler.py", "triton/backends/nvidia/lib/libdevice.10.bc"}
    assert made_of("triton") == made_of("triton", "cpu:x86-64-v3") == of_all | nvidia
    assert made_of("triton", "hip:gfx942") == of_all | {"triton/backends/amd/compiler.py"}
    assert made_of("mlir") == {"mlir/ir.py", "llvm/lib/libLLVM.so"}
    assert made_of("llvmlite") == {"llvmlite/binding/ffi.py"}


@pytest.mark.parametrize("target", ["cuda:80", "cuda:89", "cuda:90", "cuda:100"])
def test_the_assembler_is_the_one_that_runs(target):
    v3_9 = pytest.importorskip("precast.engines.triton.v3_9", reason="which one runs is Triton's to say")
    (part,) = [file for file in FILES if _find_part("ptxas", Target.parse(target)).is_part(file)]
    assert v3_9.assembler_path(Target.parse(target)).endswith(part)


def test_libraries_of_bitcode_and_files_without_an_ending_count(installed):
    found = {identify()}
    for name in ("device.bc", "device.ll", "ptxas"):
        (installed / "sample" / name).write_text(name)
        found.add(identify())
    assert len(found) == 4


def test_a_merged_list_says_which_target_has_which():
    both = {"cuda:80": (("ptxas", "1"), ("triton", "2")), "cuda:90": (("ptxas", "3"), ("triton", "2"))}
    assert merge_tools(both) == (("ptxas (cuda:80)", "1"), ("ptxas (cuda:90)", "3"), ("triton", "2"))


@pytest.mark.parametrize(
    ("target", "stage", "names"),
    [
        (Target.parse("cuda:90"), "ttgir", ("precast", "triton", "mlir")),
        (Target.parse("cuda:90"), "cubin", ("precast", "triton", "ptxas", "mlir")),
        (Target.parse("cpu:x86-64-v3"), "obj", ("precast.cpu", "mlir", "llvmlite")),
    ],
)
def test_a_stage_with_a_pass_in_it_is_keyed_by_the_bindings(target, stage, names):
    assert stage_tools(target, stage, python_pass=True) == names
    assert stage_tools(target, stage, python_pass=True, standin=True) == ("precast.stand-in", "mlir")
