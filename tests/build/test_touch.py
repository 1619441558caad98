"""What a change rebuilds: exactly what it reaches, through `precast build` and `scons` alike."""

import shutil
import subprocess
import sys

import pytest
from tree import make_tree

from precast.artifact import UnitResult
from precast.codec import from_json
from precast.release.manifest import read_manifest
from precast.release.verify import find_faults

STAND_IN = """
[tool.precast.triton]
PRECAST_ENGINE = "stand-in"
"""


def build_once(folder, more):
    tree = make_tree(folder, more=more)
    build = tree.build()
    assert build.code == 0, build.out + build.err
    return tree


def copy_tree(built, folder):
    copy = make_tree(folder)
    shutil.rmtree(copy.folder)
    shutil.copytree(built.folder, copy.folder, symlinks=True)
    return copy


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """One project on the stand-in engine, built once; each test works on a copy."""
    return build_once(tmp_path_factory.mktemp("built") / "project", STAND_IN)


@pytest.fixture
def tree(built, tmp_path):
    return copy_tree(built, tmp_path / "project")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The same, compiled by Triton."""
    return build_once(tmp_path_factory.mktemp("compiled") / "project", "")


@pytest.fixture
def triton_tree(compiled, tmp_path):
    return copy_tree(compiled, tmp_path / "project")


def units(*kernels, targets=("cuda:90", "hip:gfx942"), block=128):
    return sorted(f"{kernel}:dtype=fp32,BLOCK={block}@{target}" for kernel in kernels for target in targets)


def images(build):
    return {unit.unit: unit.digest for unit in read_manifest(build.release).units}


def test_first_build_makes_everything_and_the_second_nothing(tree):
    build = tree.build()
    assert build.summary == {
        "event": "summary",
        "built": 0,
        "reused": 6,
        "failed": 0,
        "units": 6,
        "release": build.summary["release"],
        "reason": "complete",
        "message": "",
    }
    assert build.steps == []
    assert find_faults(build.release) == []
    assert sorted(images(build)) == units("scale", "shift", "copy")


NULL_BUILD = """
import sys
from precast.cli import main
assert main(["build", "--project", sys.argv[1]]) == 0
print(sorted({name.partition(".")[0] for name in sys.modules} & {"SCons", "triton", "mlir", "llvmlite", "jinja2"}))
"""


def test_a_build_with_nothing_to_do_imports_no_build_tool_and_no_compiler(tree):
    tree.build()
    command = [sys.executable, "-c", NULL_BUILD, str(tree.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_comment_rebuilds_no_image(triton_tree):
    before = triton_tree.build()
    triton_tree.edit("kernels/scale.py", "@triton.jit", "# a comment of one line\n@triton.jit")
    build = triton_tree.build()
    assert build.compiled == []
    assert build.summary["built"] == 0 and build.summary["reused"] == 6
    assert build.release == before.release
    assert triton_tree.build().steps == []


def test_a_source_that_is_a_link_counts_by_what_it_leads_to(tree):
    source = tree.folder / "kernels" / "scale.py"
    source.rename(source.with_name("first.txt"))
    source.symlink_to("first.txt")
    assert tree.build().code == 0
    shutil.copy(source, source.with_name("second.txt"))
    source.unlink()
    source.symlink_to("second.txt")
    assert tree.build().compiled == []
    tree.edit("kernels/second.txt", "import triton\n", "import triton\n\nOTHER = 2\n")
    build = tree.build()
    assert (build.code, build.compiled) == (0, units("scale"))
    tree.edit("kernels/first.txt", "import triton\n", "import triton\n\nNOBODY_READS = 3\n")
    assert tree.build().steps == []


def test_constexpr_in_one_spec_rebuilds_its_units(tree):
    before = images(tree.build())
    tree.edit("kernels/scale.toml", "BLOCK = [128]", "BLOCK = [256]")
    build = tree.build()
    assert build.compiled == units("scale", block=256)
    after = images(build)
    assert {unit: after[unit] for unit in units("shift", "copy")} == {
        unit: before[unit] for unit in units("shift", "copy")
    }
    assert sorted(after) == sorted(units("scale", block=256) + units("shift", "copy"))


def test_shared_helper_rebuilds_its_users(triton_tree):
    triton_tree.edit("kernels/shared.py", "value + value", "value + value + value")
    assert triton_tree.build().compiled == units("scale", "shift")


def test_option_on_one_target_rebuilds_that_target(triton_tree):
    spec = triton_tree.folder / "kernels/copy.toml"
    spec.write_text(spec.read_text() + '\n[kernel.copy.target."hip:*"]\nnum_warps = 8\n')
    assert triton_tree.build().compiled == units("copy", targets=["hip:gfx942"])


def test_build_and_scons_take_turns(tree):
    """Nothing needless runs whichever comes next, and every release is right."""
    first = tree.scons()
    assert first.code == 0, first.out + first.err
    assert first.steps == []
    assert tree.build().steps == []
    tree.edit("kernels/copy.py", "offsets, value", "offsets, value + 3")
    touched = tree.build()
    assert touched.compiled == units("copy")
    assert [step for step in touched.steps if step.startswith("pack")] == ["pack cuda:90 copy", "pack hip:gfx942 copy"]
    assert find_faults(touched.release) == [] and sorted(images(touched)) == units("scale", "shift", "copy")
    again = tree.scons()
    assert again.code == 0 and again.steps == []
    tree.edit("kernels/copy.py", "value + 3", "value + 4")
    by_scons = tree.scons()
    assert by_scons.compiled == units("copy")
    assert find_faults(by_scons.release) == []
    assert tree.build().steps == []


def test_going_back_finds_the_images_in_the_store(triton_tree):
    before = triton_tree.build()
    triton_tree.edit("kernels/copy.py", "offsets, value", "offsets, value + 3")
    assert triton_tree.build().release != before.release
    triton_tree.edit("kernels/copy.py", "offsets, value + 3", "offsets, value")
    back = triton_tree.build()
    assert back.compiled == [] and back.release == before.release


def test_dropped_kernel_leaves_nothing_behind(tree):
    (tree.folder / "kernels/copy.toml").unlink()
    build = tree.build()
    assert sorted(images(build)) == units("scale", "shift")
    assert not list((tree.folder / "build/units").glob("*/copy-*"))
    assert not list((tree.folder / "build/packs").glob("*/copy.pack"))


def test_part_of_a_project(tree):
    build = tree.build("--kernel", "s*", "--target", "hip:*")
    assert sorted(images(build)) == units("scale", "shift", targets=["hip:gfx942"])
    whole = tree.build()
    assert sorted(images(whole)) == units("scale", "shift", "copy")
    assert whole.compiled == []


def test_library_is_not_compiled_again_when_only_images_change(tree):
    tree.edit("kernels/copy.py", "offsets, value", "offsets, value + 3")
    build = tree.build()
    assert not {"launchers", "library"} & set(build.steps)
    assert "release" in build.steps


OUTPUTS = (
    "build/units/cuda-90/copy-*/copy.cubin",
    "build/units/cuda-90/copy-*/facts.json",
    "build/packs/hip-gfx942/copy.pack",
    "build/lib/libdemo.so",
    "build/launchers/include/demo.h",
    "generated/demo/*/index.bin",
    "generated/demo/*/manifest.json",
    "generated/demo/*/targets/cuda-90/copy.pack",
)


def damage(path):
    """Flips a bit in place, so that every hard link of the file is damaged as well; returns what it was."""
    good = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(good[:20] + bytes([good[20] ^ 1]) + good[21:])
    return good


def is_mended(path, good):
    if path.name != "facts.json":
        return path.read_bytes() == good
    return from_json(path.read_bytes(), UnitResult).facts == from_json(good, UnitResult).facts


def check_mending(tree, patterns, command):
    before = tree.build()
    paths = [path for each in patterns for path in tree.folder.glob(each) if "current" not in path.parts]
    assert len(paths) == len(patterns)
    good = {path: damage(path) for path in paths}
    build = getattr(tree, command)()
    assert build.release == before.release
    assert [path for path in paths if not is_mended(path, good[path])] == []
    assert find_faults(build.release) == []
    assert tree.build().steps == []


@pytest.mark.parametrize("command", ["scons", pytest.param("build", marks=pytest.mark.all)])
def test_damaged_outputs_are_noticed_and_mended(tree, command):
    check_mending(tree, OUTPUTS, command)


@pytest.mark.all
@pytest.mark.parametrize("command", ["build", "scons"])
@pytest.mark.parametrize("pattern", OUTPUTS)
def test_each_damaged_output_is_noticed_and_mended(tree, command, pattern):
    check_mending(tree, [pattern], command)


def test_removed_output_is_made_again(tree):
    before = tree.build()
    shutil.rmtree(before.release)
    (tree.folder / "generated/demo/current").unlink()
    assert tree.build().release == before.release
    assert find_faults(before.release) == []


@pytest.mark.parametrize("command", ["scons", pytest.param("build", marks=pytest.mark.all)])
def test_damaged_notes_of_the_build_cost_no_compilation(tree, command):
    before = tree.build()
    for name in ("build/index.sqlite", "build/sconsign.dblite", "build/digests.json"):
        (tree.folder / name).write_bytes(b"garbage\x00" * 9)
    build = getattr(tree, command)()
    assert build.compiled == [] and build.release == before.release
    assert tree.build().steps == []
