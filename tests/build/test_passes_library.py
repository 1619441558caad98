"""A native plugin built by the project's own SConstruct: library → probe → units, and nothing more when it changes."""

import shutil

import pytest
from plugin_tree import HEAD, PluginTree

# The structures are those of Triton's PluginUtils.h. The one pass adds nothing to the manager that it is given: what
# could, needs MLIR's own headers, which the wheel does not have.
SOURCE = """
#include <stddef.h>
#include <stdint.h>

typedef struct { const char *name, *version; void (*add)(void *, const void *); void (*enroll)(void); } pass_info;
typedef struct { const char *name, *version; void (*enroll)(void *); } dialect_info;
typedef struct { const char *name; void (*add)(void *, void *); } op_info;
typedef struct {
  uint32_t api;
  const char *name, *version;
  pass_info *passes; size_t num_passes;
  dialect_info *dialects; size_t num_dialects;
  op_info *ops; size_t num_ops;
  const char *triton_version;
} plugin_info;

static void add(void *manager, const void *arguments) { (void)manager; (void)arguments; }
static void enroll(void) {}
static pass_info passes[] = {{"nothing", "1", add, enroll}};
static plugin_info info = {API, "mine", "1", passes, 1, 0, 0, 0, 0, TRITON};

plugin_info *tritonGetPluginInfo(void) { return &info; }
"""

LIBRARY = """
env.Append(CPPDEFINES={{"API": "{api}", "TRITON": '\\\\"{triton}\\\\"'}})
library = env.SharedLibrary("build/native/mine", "native/mine.c")
env.Precast(plugins=library)
"""

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")


@pytest.fixture
def tree(tmp_path):
    tree = PluginTree(tmp_path, ("cuda:90",))
    tree.write("native/mine.c", SOURCE)
    tree.edit("SConstruct", "env.Precast()\n", LIBRARY.format(api=2, triton="3.9.0"))
    tree.write("plugins/native.py", HEAD + 'nothing = NativePass("build/native/libmine.so", "nothing")\n')
    tree.select('use = "nothing"\nkernels = "scale"')
    return tree


def units(build):
    return [step.partition(":")[0] for step in build.steps if "@" in step]


def test_a_library_that_the_sconstruct_builds_is_probed_and_runs(tree):
    first = tree.scons()
    assert first.code == 0, first.out + first.err
    assert sorted(units(first)) == ["copy", "scale"]
    assert tree.scons().steps == []
    tree.edit("native/mine.c", '"nothing", "1"', '"nothing", "2"')
    again = tree.scons()
    assert again.code == 0, again.out + again.err
    assert units(again) == ["scale"]


@pytest.mark.parametrize(
    "api, version, message",
    [
        (1, "3.9.0", "plugin library `libmine.so` has plugin API 1, and Triton 3.9.0 has 2"),
        (2, "3.8.0", "plugin library `libmine.so` was built for Triton 3.8.0, and this is 3.9.0"),
    ],
)
def test_a_library_for_another_triton_is_told_in_a_sentence(tree, api, version, message):
    tree.edit("SConstruct", LIBRARY.format(api=2, triton="3.9.0"), LIBRARY.format(api=api, triton=version))
    build = tree.scons()
    assert build.code == 2
    assert message in build.out + build.err
    assert units(build) == []
