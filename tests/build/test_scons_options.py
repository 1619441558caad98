"""Plain SCons's own ways: a dry run lists, and a cache folder of SCons decides nothing."""

import pytest
from tree import Tree


def test_a_dry_run_lists_what_would_be_made(tmp_path):
    tree = Tree(tmp_path, ("cuda:90",))
    tree.add_kernel("shift")
    dry = tree.scons("-n")
    assert dry.code == 0, dry.out + dry.err
    listed = [line.removeprefix("scons: would make ") for line in dry.out.splitlines() if "would make" in line]
    assert {"launchers", "shift:dtype=fp32,BLOCK=128@cuda:90", "release"} <= set(listed)
    assert not (tmp_path / "generated").exists() and not list((tmp_path / "build").rglob("*.cubin"))


@pytest.mark.all
def test_a_cache_folder_of_scons_is_not_used(tmp_path):
    tree = Tree(tmp_path, ("cuda:90",))
    tree.add_kernel("shift")
    cached = 'CacheDir("cache")\nenv.CacheDir("cache")\nenv.Precast()'
    tree.edit("SConstruct", "env.Precast()", cached)
    first = tree.scons()
    assert first.code == 0, first.out + first.err
    assert not [path for path in (tmp_path / "cache").rglob("*/*") if path.is_file()]  # but what says that it is one
    assert tree.scons().steps == []
    dry = tree.scons("-n")
    assert dry.code == 0 and "would make" not in dry.out
