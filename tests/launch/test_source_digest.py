"""The digest of a jit function: what it reaches counts, what it does not reach does not, and nothing is passed over."""

from __future__ import annotations

import sys

import pytest
from digested_kernels import CHANGES, HELPER, SAME, UNDESCRIBED, kernel, load_text

from precast.engines.source_digest import digest_source


def digests(folder, *texts):
    return [digest_source(load_text(text, folder, f"digest_{number}").kernel) for number, text in enumerate(texts)]


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_kernel_reaches_counts(tmp_path, name):
    before, after, again = digests(tmp_path, *CHANGES[name], CHANGES[name][0])
    assert (before.fault, after.fault) == ("", "")
    assert before.text == again.text
    assert before.text != after.text


@pytest.mark.parametrize("name", SAME)
def test_what_it_does_not_reach_does_not(tmp_path, name):
    before, after = digests(tmp_path, *SAME[name])
    assert (before.fault, before.text) == ("", after.text)


@pytest.mark.parametrize("text", UNDESCRIBED, ids=UNDESCRIBED.values())
def test_what_cannot_be_described_leaves_no_digest(tmp_path, text):
    (found,) = digests(tmp_path, text)
    assert (found.text, found.fault) == ("", UNDESCRIBED[text])


def test_file_that_has_the_name_of_a_library_is_none(tmp_path, monkeypatch):
    found = []
    folded = "import this\n@triton.constexpr_function\ndef folded(x):\n    return this.plain(x)\n"
    for value in (1, 2):
        (tmp_path / "this.py").write_text(f"def plain(x):\n    return x + {value}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "this", raising=False)
        found.append(digest_source(load_text(kernel("folded(1)", folded), tmp_path, f"shadow_{value}").kernel))
    assert found[0].text and found[0].text != found[1].text


def test_digest_holds_while_its_names_do(tmp_path):
    module = load_text(kernel("helper(X)", HELPER.format(1) + "X = tl.constexpr(1)"), tmp_path, "holding")
    before = digest_source(module.kernel)
    assert before.is_current()
    module.X = type(module.X)(2)
    assert not before.is_current()
    after = digest_source(module.kernel)
    assert after.text != before.text and after.is_current()
