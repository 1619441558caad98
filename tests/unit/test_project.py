"""`[tool.precast]`: what it says, what it falls back to, and the exact errors."""

import pytest
from small_projects import SETTINGS, error_text, make_project

from precast.cache.settings import CacheSettings
from precast.cli import main
from precast.errors import SpecError
from precast.project import read_project
from precast.spec.model import CompileSettings
from precast.spec.selection import PassSelection
from precast.target import CPU_LEVELS, Target


def project(folder, settings, **options):
    return read_project(make_project(folder, {"pyproject.toml": settings}), **options)


def test_everything_that_can_be_said(tmp_path):
    (tmp_path / "ptxas").write_text("")
    (tmp_path / "src").mkdir()
    (tmp_path / "ops").mkdir()
    found = project(
        tmp_path,
        """
        [tool.precast]
        name = "demo"
        version = "2.1"
        targets = ["cuda:90", "cpu:x86-64-v3"]
        kernels = ["specs/*.toml", "more/*.toml"]
        pythonpath = ["src", "./src/../ops"]
        line_info = true
        time_limit_s = 60
        memory_limit_mb = 4096
        [tool.precast.defaults]
        num_warps = 8
        [tool.precast.tools]
        ptxas = "ptxas"
        [tool.precast.triton]
        TRITON_F32_DEFAULT = "ieee"
        AMDGCN_USE_BUFFER_OPS = false
        [tool.precast.environment]
        GEMS_VENDOR = "nvidia"
        FLA_USE_TMA = 1
        [[tool.precast.pass]]
        use = "count-loads"
        kernels = "attn_*"
        targets = ["cuda:*"]
        options = { cached = true, limit = 3 }
        [[tool.precast.pass]]
        use = "rename"
        variants = ["*BLOCK=128*"]
        at = "end"
        enabled = false
        """,
    )
    assert (found.name, found.version) == ("demo", "2.1")
    assert found.targets == (Target("cuda", "90"), Target("cpu", "x86-64-v3"))
    assert found.kernels == ("specs/*.toml", "more/*.toml")
    assert found.search_path == (tmp_path / "src", tmp_path / "ops")
    environment = (("AMDGCN_USE_BUFFER_OPS", "0"), ("TRITON_F32_DEFAULT", "ieee"))
    heard = (("FLA_USE_TMA", "1"), ("GEMS_VENDOR", "nvidia"))
    assert found.settings == CompileSettings(True, environment, str(tmp_path / "ptxas"), heard)
    assert (found.time_limit_s, found.memory_limit_mb) == (60.0, 4096)
    assert found.passes == (
        PassSelection("count-loads", ("attn_*",), ("*",), ("cuda:*",), (("cached", True), ("limit", 3))),
        PassSelection("rename", ("*",), ("*BLOCK=128*",), ("*",), (), "end", False),
    )


def test_what_is_left_out(tmp_path):
    found = project(
        tmp_path, '[project]\nname = "my-kernels"\nversion = "0.3"\n[tool.precast]\ntargets = ["hip:gfx942"]\n'
    )
    assert (found.name, found.version, found.kernels, found.python_path) == (
        "my_kernels", "0.3", ("kernels/*.toml",), (".",),
    )  # fmt: skip
    assert found.settings == CompileSettings()
    assert found.passes == ()


def test_default_options_reach_every_kernel(tmp_path):
    settings = SETTINGS + "[tool.precast.defaults]\nnum_warps = 8\nwaves_per_eu = 2\n"
    make_project(tmp_path, {"pyproject.toml": settings})
    from small_projects import plan

    options = {str(each.unit.target): dict(each.unit.options) for each in plan(tmp_path).units}
    assert options == {
        "cuda:80": {"num_warps": 8},
        "cuda:90": {"num_warps": 8},
        "hip:gfx942": {"num_warps": 8, "waves_per_eu": 2},
    }


def test_native_is_a_level(tmp_path):
    settings = '[tool.precast]\nname = "demo"\ntargets = ["cpu:native"]\n'
    assert project(tmp_path, settings, native="x86-64-v2").targets == (Target("cpu", "x86-64-v2"),)
    assert project(tmp_path, settings).targets[0].arch in CPU_LEVELS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "[tool.other]\n",
            "error: `pyproject.toml` has no [tool.precast] table\n"
            'hint: write `[tool.precast]` with `targets = ["cuda:90"]`',
        ),
        (
            '[tool.precast]\nname = "demo"\ntarget = ["cuda:90"]\n',
            """\
pyproject.toml:1:7: error: the project has no targets
    [tool.precast]
          ^~~~~~~
hint: write `targets = ["cuda:90"]` in [tool.precast]

pyproject.toml:3:1: error: unknown key `target`
    target = ["cuda:90"]
    ^~~~~~
hint: did you mean `targets`?""",
        ),
        (
            '[tool.precast]\nname = "demo"\ntargets = ["cuda:101", "cuda:90", "cuda:90"]\n',
            """\
pyproject.toml:3:12: error: nobody can build for target `cuda:101`
    targets = ["cuda:101", "cuda:90", "cuda:90"]
               ^~~~~~~~~~
hint: cuda has 75, 80, 86, 87, 89, 90, 100, 103, 107, 110, 120, 121

pyproject.toml:3:35: error: target `cuda:90` is there twice
    targets = ["cuda:101", "cuda:90", "cuda:90"]
                                      ^~~~~~~~~""",
        ),
        (
            SETTINGS + 'kernels = ["/etc/*.toml", "", "specs/*.toml"]\npythonpath = ["scr"]\n',
            """\
pyproject.toml:5:12: error: `/etc/*.toml` is no glob
    kernels = ["/etc/*.toml", "", "specs/*.toml"]
               ^~~~~~~~~~~~~
hint: write one that begins in the project's folder: `kernels/*.toml`

pyproject.toml:5:27: error: `` is no glob
    kernels = ["/etc/*.toml", "", "specs/*.toml"]
                              ^~
hint: write one that begins in the project's folder: `kernels/*.toml`

pyproject.toml:6:15: error: there is no folder `scr`
    pythonpath = ["scr"]
                  ^~~~~""",
        ),
        (
            SETTINGS + "kernels = []\n",
            """\
pyproject.toml:5:1: error: `kernels` is empty
    kernels = []
    ^~~~~~~
hint: leave it out for `kernels/*.toml`""",
        ),
        (
            '[tool.precast]\nname = "my kernels"\ntargets = ["cuda:90"]\n',
            """\
pyproject.toml:2:8: error: `my kernels` cannot be a project's name
    name = "my kernels"
           ^~~~~~~~~~~~
hint: it becomes a C prefix and a Python package: letters, digits and underscores, no word that is taken""",
        ),
        (
            SETTINGS + "[tool.precast.defaults]\nnum_warp = 8\nnum_ctas = 2\n",
            """\
pyproject.toml:6:1: error: unknown option `num_warp`
    num_warp = 8
    ^~~~~~~~
hint: did you mean `num_warps`?

pyproject.toml:7:12: error: option `num_ctas` = 2 needs sm_90 or later: cuda:80 cannot have it
    num_ctas = 2
               ^

pyproject.toml:7:12: error: option `num_ctas` = 2 needs gfx1250: no other AMD target has clusters: hip:gfx942 cannot \
have it
    num_ctas = 2
               ^""",
        ),
        (
            SETTINGS + '[tool.precast.tools]\nptxas = "/nowhere/ptxas"\n[tool.precast.triton]\nCUDA_PATH = "x"\n',
            """\
pyproject.toml:6:9: error: there is no file `/nowhere/ptxas`
    ptxas = "/nowhere/ptxas"
            ^~~~~~~~~~~~~~~~

pyproject.toml:8:1: error: `CUDA_PATH` is no variable of Triton's
    CUDA_PATH = "x"
    ^~~~~~~~~
hint: they begin with `TRITON_` or `AMDGCN_`""",
        ),
        (
            SETTINGS
            + '[tool.precast.environment]\nTRITON_F32_DEFAULT = "ieee"\nHOME = "/h"\nPYTHONPATH = "p"\n"A-B" = 1\n'
            + "[tool.precast.triton]\nTRITON_BACKENDS_IN_TREE = 0\n",
            """\
pyproject.toml:6:1: error: `TRITON_F32_DEFAULT` is Triton's
    TRITON_F32_DEFAULT = "ieee"
    ^~~~~~~~~~~~~~~~~~
hint: set it in [tool.precast.triton]

pyproject.toml:7:1: error: `HOME` cannot be set: a worker has its own
    HOME = "/h"
    ^~~~

pyproject.toml:8:1: error: `PYTHONPATH` cannot be set: a worker has its own
    PYTHONPATH = "p"
    ^~~~~~~~~~

pyproject.toml:9:1: error: `A-B` cannot be a variable's name
    "A-B" = 1
    ^~~~~
hint: letters, digits and underscores

pyproject.toml:11:1: error: `TRITON_BACKENDS_IN_TREE` cannot be set: workers use Triton's own back ends alone
    TRITON_BACKENDS_IN_TREE = 0
    ^~~~~~~~~~~~~~~~~~~~~~~""",
        ),
        (
            SETTINGS
            + '[[tool.precast.pass]]\nkernels = "*"\n[[tool.precast.pass]]\nuse = "a"\ntargets = "cdua:*"\nwhen = 1\n',
            """\
pyproject.toml:5:16: error: a pass needs `use`
    [[tool.precast.pass]]
                   ^~~~
hint: write `use = "name-of-the-pass"`

pyproject.toml:9:11: error: target `cdua:*` matches nothing
    targets = "cdua:*"
              ^~~~~~~~
hint: did you mean `cuda:*`?

pyproject.toml:10:1: error: unknown key `when`
    when = 1
    ^~~~
hint: known keys: `at`, `enabled`, `kernels`, `options`, `targets`, `use`, `variants`""",
        ),
        (
            SETTINGS + 'line_info = "yes"\ntime_limit_s = -1\n',
            """\
pyproject.toml:5:13: error: `line_info` must be true or false, not a string
    line_info = "yes"
                ^~~~~

pyproject.toml:6:16: error: `time_limit_s` must be at least 1
    time_limit_s = -1
                   ^~""",
        ),
        (
            SETTINGS + 'kernels = ["specs/*.toml"]\n',
            "pyproject.toml:5:12: error: no spec file matches `specs/*.toml`\n"
            '    kernels = ["specs/*.toml"]\n'
            "               ^~~~~~~~~~~~~~\nhint: a spec is a TOML file: kernels/NAME.toml",
        ),
        (
            SETTINGS + '[tool.precast.cache]\nurl = "ftp://host/x"\nread = 1\nlimit = "ten"\nuri = "x"\n',
            """\
pyproject.toml:6:7: error: `ftp://host/x` is no address of a cache: `ftp://` is no place that Precast knows
    url = "ftp://host/x"
          ^~~~~~~~~~~~~~
hint: a folder, or an address that begins with http://, https://, s3://, gs:// or az://

pyproject.toml:7:8: error: `read` must be true or false, not an integer
    read = 1
           ^

pyproject.toml:8:9: error: `ten` is no size
    limit = "ten"
            ^~~~~
hint: write it as `500MB`, `10GB` or `2GiB`

pyproject.toml:9:1: error: unknown key `uri`
    uri = "x"
    ^~~
hint: did you mean `url`?""",
        ),
    ],
)
def test_bad_settings(tmp_path, settings, message):
    make_project(tmp_path, {"pyproject.toml": settings})
    assert error_text(tmp_path) == message


def test_a_shared_cache(tmp_path):
    said = SETTINGS + '[tool.precast.cache]\nurl = "https://host/x"\nwrite = false\nlimit = "1.5 GB"\n'
    assert project(tmp_path, said).cache == CacheSettings("https://host/x", True, False, 1_500_000_000)
    assert project(tmp_path, SETTINGS).cache == CacheSettings()


def test_no_project(tmp_path):
    with pytest.raises(SpecError) as caught:
        read_project(tmp_path)
    assert caught.value.message == f"there is no `{tmp_path}/pyproject.toml`"


@pytest.mark.parametrize(
    ("folder", "file", "command"),
    [
        ("x\udcff", "kernels/k.toml", "plan"),
        ("demo", "kernels/\udcff.toml", "plan"),
        ("demo", "plugins/\udcff.py", "passes"),
    ],
)
def test_a_name_that_is_no_text_is_told(tmp_path, folder, file, command, capfd):
    project = tmp_path / folder
    (project / file).parent.mkdir(parents=True)
    (project / file).touch()
    (project / "pyproject.toml").write_text('[tool.precast]\nname = "demo"\ntargets = ["cuda:90"]\n')
    assert main([command, "--project", str(project)]) == 1
    wrong = project if folder != "demo" else project / file
    assert capfd.readouterr().err == f"error: cannot use {str(wrong)!a}: its name is not utf-8\n".replace("'", "")
