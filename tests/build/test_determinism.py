"""Same inputs, same bytes: two clean builds in different folders, with other job counts and hash seeds."""

import json
import shutil
from pathlib import Path

import pytest
from thinning import draw_values, with_first_values
from tree import Tree

REPOSITORY = Path(__file__).parents[2]


def release_bytes(release):
    files = {path.relative_to(release).as_posix(): path.read_bytes() for path in release.rglob("*") if path.is_file()}
    return {name: data for name, data in files.items() if "__pycache__" not in name}


def copy_project(folder, specs, targets, thin_out, more=""):
    """The repository's own kernels of `specs` as a project in `folder`, with each spec as `thin_out` leaves it."""
    tree = Tree(folder, targets=targets, more=more, compiler="cc")
    shutil.copytree(REPOSITORY / "kernels", folder / "kernels")
    for path in (folder / "kernels").glob("*.toml"):
        path.write_text(thin_out(path.read_text())) if path.stem in specs else path.unlink()
    return tree


def check_equal_releases(tmp_path, specs, **settings):
    one = copy_project(tmp_path / "one", specs, **settings)
    two = copy_project(tmp_path / "another" / "deeper place", specs, **settings)
    first = one.build("-j1", "-k", PYTHONHASHSEED="1")
    second = two.build("-j2", "-k", PYTHONHASHSEED="2")
    assert first.code == 0, first.err
    for each in (first, second):  # two variants whose text is the same are compiled once: a few are found again
        assert each.summary["reused"] < each.summary["built"] / 5
    assert first.release.name == second.release.name
    assert release_bytes(first.release) == release_bytes(second.release)
    for name, data in release_bytes(first.release).items():
        assert str(tmp_path).encode() not in data, name
    return first


SPECS = sorted(path.stem for path in (REPOSITORY / "kernels").glob("*.toml"))


@pytest.mark.parametrize("specs", [SPECS[::4], pytest.param([*SPECS[1::4], *SPECS[2::4], *SPECS[3::4]],
                                                            marks=pytest.mark.all)], ids=["few", "others"])  # fmt: skip
def test_one_unit_of_each_kernel_is_the_same_everywhere(tmp_path, specs):
    targets = ("cuda:90", "cpu:x86-64-v3")
    build = check_equal_releases(tmp_path, specs, targets=targets, thin_out=with_first_values)
    assert len(specs) <= build.summary["units"] <= 3 * len(specs)


@pytest.mark.parametrize("line_info", [False, True])
@pytest.mark.parametrize("seed", [pytest.param(11, marks=pytest.mark.all), pytest.param(None, marks=pytest.mark.soak)])
def test_every_unit_is_the_same_everywhere(tmp_path, line_info, seed):
    """All units; with a seed, of each kernel those of one choice of values, with all hints."""
    print(f"seed {seed}")
    more = f"line_info = {json.dumps(line_info)}"
    thin_out = str if seed is None else draw_values(f"{seed} {line_info}")
    targets = ("cuda:90", "hip:gfx942", "cpu:x86-64-v3")
    check_equal_releases(tmp_path, SPECS, targets=targets, thin_out=thin_out, more=more)
