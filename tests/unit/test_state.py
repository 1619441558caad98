"""What a job may have changed in a worker's process is seen, whatever it is; what it only used is not."""

import gc
import json
import subprocess
import sys
import types

import pytest


@pytest.fixture(autouse=True)
def without_garbage():
    """What other tests left open is closed before a look, not between two."""
    gc.collect()


# What code does, and the part of the state in which that shows. Each runs in one process after the others.
MISCHIEF = {
    "pathlib.Path(home.folder, 'left').touch()": "files",
    "pathlib.Path(home.folder, 'left').write_text('more')": "files",
    "os.makedirs(home.folder + '/.cache/of others')": "files",
    "os.environ['NEW'] = '1'": "environment",
    "os.putenv('NATIVE', '1')": "environment",
    "ctypes.CDLL(None).setenv(b'BELOW', b'1', 1)": "environment",
    "os.environ = dict(os.environ, ONLY_HERE='1')": "environment",
    "os.chdir('/')": "folder",
    "kept.append(open('/dev/null'))": "descriptors",
    "os.dup2(os.open('/dev/zero', os.O_RDONLY), 0)": "descriptors",
    "sys.setrecursionlimit(5000)": "interpreter",
    "sys.setswitchinterval(0.5)": "interpreter",
    "gc.disable()": "interpreter",
    "sys.stdout = io.StringIO()": "interpreter",
    "sys.excepthook = print": "interpreter",
    "sys.setprofile(lambda *_: None)": "interpreter",
    "threading.excepthook = print": "interpreter",
    "builtins.leaked = 1": "interpreter",
    "random.seed(1)": "interpreter",
    "flush_subnormals()": "interpreter",
    "ctypes.CDLL('libm.so.6').fesetround(0x400)": "interpreter",
    "signal.signal(signal.SIGUSR1, lambda *_: None)": "signals",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)": "signals",
    "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})": "signals",
    "signal.setitimer(signal.ITIMER_REAL, 1000)": "signals",
    "set_native_timer()": "signals",
    "warnings.simplefilter('error')": "warnings",
    "warnings.showwarning = print": "warnings",
    "locale.setlocale(locale.LC_ALL, 'C')": "locale",
    "sys.path.append('/somewhere')": "import_system",
    "sys.path.reverse()": "import_system",
    "sys.meta_path.insert(0, importlib.abc.MetaPathFinder())": "import_system",
    "sys.path_hooks.clear()": "import_system",
    "os.umask(0o077)": "limits",
    "os.nice(1)": "limits",
    "os.set_blocking(kept[0].fileno(), False)": "descriptors",
    "signal.set_wakeup_fd(kept[0].fileno())": "signals",
    "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))": "limits",
    "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()": "threads",
    "_thread.start_new_thread(lambda: running.set() or time.sleep(1000), ()), running.wait()": "threads",
    "kept.append(subprocess.Popen(['sleep', '1000']))": "processes",
    "json.dumps = str": "contents of json",
    "json.JSONEncoder.encode = str": "contents of json.encoder.JSONEncoder",
    "math.exp = math.log": "contents of math",
    "builtins.abs = id": "contents of builtins",
    "random.random = int": "contents of random",
    "itertools.product = zip": "contents of itertools",
    "time.time_ns = id": "contents of time",
    "dataclasses.Field.__repr__ = id": "contents of dataclasses.Field",
    "del os.path.relpath": "contents of posixpath",
    "math.pi = 3.0": "contents of math",
    "json.encoder.INFINITY = 1.0": "contents of json.encoder",
    "json.JSONEncoder.item_separator = ';'": "contents of json.encoder.JSONEncoder",
    "del time.altzone": "contents of time",
    "tools.STANDIN = 'other'": "contents of precast.identity.tools",
    "tools.ENGINES['triton'] = 'other'": "contents of precast.identity.tools",
    "tools.Identities.added = len": "contents of precast.identity.tools.Identities",
    "faulthandler.enable()": "interpreter",
    "threading.stack_size(1 << 20)": "interpreter",
    "sys.setdlopenflags(sys.getdlopenflags() ^ 0x100)": "interpreter",
    "sys.set_asyncgen_hooks(print)": "interpreter",
    "sys.addaudithook(lambda *_: None)": "interpreter",
    "gc.callbacks.append(lambda *_: None)": "interpreter",
    "gc.set_debug(gc.DEBUG_UNCOLLECTABLE)": "interpreter",
    "codecs.register_error('replace', lambda error: ('', error.end))": "interpreter",
    "decimal.DefaultContext.prec = 4": "interpreter",
    "os.setpgid(0, 0)": "limits",
}
INNOCENT = ["len('x')", "import colorsys", "json.dumps(1)", "warnings.filterwarnings('ignore', 'me')", "os.getcwd()"]
INNOCENT += ["tempfile.gettempdir()", "sys.dont_write_bytecode = True", "os.mkdir(home.folder + '/precast-hook-1')"]

PROGRAM = """
import _thread, builtins, codecs, ctypes, dataclasses, decimal, faulthandler, gc, importlib.abc, io, itertools, json
import locale, math, os, pathlib, random, resource, signal, subprocess, sys, tempfile, threading, time, warnings
from precast.identity import tools
from precast.worker.state import Home, read_state
home = Home(sys.argv[2])
kept, told, write, running = [], {}, os.write, threading.Event()
def flush_subnormals():  # as libraries do that were linked with -ffast-math
    environment = ctypes.create_string_buffer(32)
    library = ctypes.CDLL("libm.so.6")
    library.fegetenv(environment)
    environment[29] = environment.raw[29] | 0x80
    library.fesetenv(environment)
def set_native_timer():  # that of the monotonic clock, which tells nobody when it has run out
    event = (ctypes.c_int * 16)(0, 0, 0, signal.SIGALRM)
    event[3] = 1
    assert not ctypes.CDLL(None).timer_create(1, event, ctypes.byref(ctypes.c_void_p()))
locale.setlocale(locale.LC_ALL, "C.UTF-8")
before = None
for line in json.loads(sys.argv[1]):
    before = read_state((), before, home)
    exec(line)
    told[line] = before.changes_to(read_state((), before, home))
for each in kept:
    hasattr(each, "kill") and each.kill()
write(1, repr(told).encode())
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    words = [json.dumps([*INNOCENT, *MISCHIEF]), str(tmp_path_factory.mktemp("home"))]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return eval(done.stdout)


@pytest.mark.parametrize("line", MISCHIEF)
def test_what_code_from_outside_changes_is_seen(seen, line):
    assert MISCHIEF[line] in seen[line]


@pytest.mark.parametrize("line", INNOCENT)
def test_what_code_only_uses_is_no_change(seen, line):
    assert seen[line] == ()


def test_what_lies_in_the_projects_own_folders_is_for_its_loader_to_forget(monkeypatch):
    from precast.worker.state import read_state

    before = read_state(("/project",))
    monkeypatch.syspath_prepend("/project/kernels")  # other parts of this process's state are whose tests ran before
    assert "import_system" not in before.changes_to(read_state(("/project",)))
    monkeypatch.syspath_prepend("/elsewhere")
    assert "import_system" in before.changes_to(read_state(("/project",)))


def test_modules_of_others_that_come_and_go_cost_no_look_at_all_that_is_watched(monkeypatch):
    from precast.worker.replaced import read_contents

    before = read_contents(None)
    monkeypatch.setitem(sys.modules, "kernels_of_somebody", types.ModuleType("kernels_of_somebody"))
    assert read_contents(before) is before
    monkeypatch.setitem(sys.modules, "json.anew", types.ModuleType("json.anew"))
    assert "json.anew" in read_contents(before).places


def test_settings_of_triton_are_part_of_it():
    knobs = pytest.importorskip("triton.knobs", reason="Triton's settings need Triton")
    from precast.worker.state import read_state

    before = read_state()
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        assert "knobs" in before.changes_to(read_state())
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(print)
        assert "knobs" in before.changes_to(read_state())
        knobs.runtime.launch_enter_hook.remove(print)
    assert "knobs" not in before.changes_to(read_state())
