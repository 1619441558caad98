"""What a user's code reads and nobody declared is an input of the next build."""

import pytest
from tree import Tree

pytestmark = pytest.mark.all

STANDIN = '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"\n'
TUNED = """
import json
from pathlib import Path

BLOCKS = json.loads(Path(__file__).with_name("tuned.json").read_text())
FACTOR = triton.language.constexpr(BLOCKS["factor"])
"""


def test_a_data_file_that_the_stand_in_reads(tmp_path):
    tree = Tree(tmp_path, targets=("cuda:90",), more=STANDIN)
    tree.add_kernel("copy", "value")
    tree.write("kernels/copy.py", "# stand-in: data kernels/table.txt\n" + (tmp_path / "kernels/copy.py").read_text())
    first = tree.build()
    assert [each["message"] for each in first.events if each["event"] == "warning"] == [
        "copy:dtype=fp32,BLOCK=128@cuda:90 also uses kernels/table.txt, which its imports do not show; "
        "noted for next time"
    ]
    assert tree.build().steps == []
    tree.write("kernels/table.txt", "one")  # was not there when it was read
    second = tree.build()
    assert second.compiled and second.release.name != first.release.name
    assert not [each for each in second.events if each["event"] == "warning"]  # told once
    tree.write("kernels/table.txt", "two")
    third = tree.build()
    assert third.compiled and third.release.name not in (first.release.name, second.release.name)
    tree.write("kernels/table.txt", "one")
    assert tree.build().release.name == second.release.name


@pytest.mark.parametrize("targets", [("cuda:90", "cpu:x86-64-v3"), ("cpu:x86-64-v3", "hip:gfx942")])
def test_a_table_that_a_kernels_module_reads_when_it_is_imported(tmp_path, targets):
    tree = Tree(tmp_path, targets=targets)
    tree.add_kernel("scale", "value * FACTOR", TUNED)
    tree.write("kernels/tuned.json", '{"factor": 2}')
    first = tree.build()
    assert len(first.compiled) == 2 and tree.build().steps == []
    tree.write("kernels/tuned.json", '{"factor": 3}')
    second = tree.build()
    assert second.compiled == first.compiled
    assert second.release.name != first.release.name


def test_what_moved_while_it_was_built_reaches_no_release(tmp_path):
    tree = Tree(tmp_path, targets=("cuda:90",), more=STANDIN)
    tree.add_kernel("copy", "value")
    text = (tmp_path / "kernels/copy.py").read_text()
    mischief = "from pathlib import Path\npath = Path({!r})\npath.write_text(path.read_text() + 'x = 1\\n')\n"
    tree.write("kernels/mischief.py", mischief.format(str(tmp_path / "kernels/copy.py")))
    tree.write("kernels/copy.py", "# stand-in: run mischief.py\n" + text)
    build = tree.build()
    assert build.code == 1 and not (tmp_path / "generated").exists()
    failed = [each for each in build.events if each["event"] == "failed"]
    assert [each["message"] for each in failed] == [
        "kernels/copy.py changed while copy:dtype=fp32,BLOCK=128@cuda:90 was built"
    ]
    assert "hint: build again" in failed[0]["text"]
    tree.write("kernels/copy.py", text)
    assert tree.build().release.is_dir()
