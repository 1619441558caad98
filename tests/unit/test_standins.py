"""What modules do with packages that are not installed, as their authors wrote it: the module loads."""

from pathlib import Path

import pytest

from precast.engines.triton.load import KernelLoader
from precast.spec.model import Source
from precast.target import Target

CPU, CUDA, HIP = (Target.parse(text) for text in ("cpu:x86-64-v3", "cuda:90", "hip:gfx942"))
MODULES = Path(__file__).parents[1] / "fixtures" / "standin_modules.txt"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
KERNEL = "\n@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, 1.0)\n"


@pytest.fixture
def names(tmp_path):
    """The names of a module with the given text, once it is loaded."""
    loader = KernelLoader()

    def load(text: str, target: Target = CUDA) -> dict[str, object]:
        (tmp_path / "one.py").write_text(HEAD + text + KERNEL)
        return loader.load(Source("one.py", "", "kernel"), tmp_path, [tmp_path], target).function.__globals__

    yield load
    loader.close()


def read_modules() -> dict[str, str]:
    """The texts of the fixture by name."""
    _, *parts = MODULES.read_text().split("\n# --- ")
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


@pytest.mark.parametrize("text", read_modules().values(), ids=read_modules())
def test_a_module_loads_without_its_framework(names, text):
    assert names(text)["FOUND"]


def test_a_reexported_language_is_tritons_own(names):
    """Frameworks hand out `triton` and `tl`; one that is absent cannot."""
    found = names(
        "from fla.utils import tl as language, triton as compiler\nfrom vllm.triton_utils import tl, triton\n"
    )
    assert found["tl"].constexpr and found["triton"].jit and found["language"] is found["tl"]
