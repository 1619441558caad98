"""Fuzzing of all that is read from releases and specs: a few rounds each time, many in CI, a million at leisure. What
once did harm is read again each time."""

from __future__ import annotations

from pathlib import Path

import fuzz_python
import pytest
from corpus_runtime import list_entries
from fuzz_release import Fuzzer

SEED = 20261130
# Rounds in the first and second tier; the second has 20,000 in all.
IN_C = {"index": (60, 3000), "pack": (40, 2500), "manifest": (30, 1500), "signature": (20, 1000), "grid": (500, 6000)}
IN_PYTHON = {
    "manifest": (30, 1200), "pack": (50, 1300), "spec": (30, 800), "source": (20, 400), "toml": (50, 1300),
    "grid": (100, 1000),
}  # fmt: skip
MILLION = 1_000_000


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    return Fuzzer(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("target", IN_C)
def test_runtime_reads_no_harm(fuzzer: Fuzzer, target: str) -> None:
    taken = fuzzer.run(target, SEED, IN_C[target][0])
    assert taken > 0, "nothing that was changed was ever taken: the digests are not repaired"


def test_what_once_did_harm_to_the_runtime(fuzzer: Fuzzer) -> None:
    entries = list(list_entries(fuzzer.base))
    assert len(entries) > 200
    fuzzer.read_corpus(entries)


@pytest.mark.all
@pytest.mark.parametrize("target", IN_C)
def test_runtime_reads_no_harm_in_many_rounds(fuzzer: Fuzzer, target: str) -> None:
    fuzzer.run(target, SEED + 1, IN_C[target][1])


@pytest.mark.soak
@pytest.mark.parametrize("target", IN_C)
def test_runtime_reads_no_harm_in_a_million_rounds(fuzzer: Fuzzer, target: str) -> None:
    fuzzer.run_shared(target, SEED + 2, MILLION)


@pytest.mark.parametrize("target", IN_PYTHON)
def test_python_says_what_is_wrong(tmp_path: Path, target: str) -> None:
    fuzz_python.fuzz(target, tmp_path / target, SEED, IN_PYTHON[target][0])


@pytest.mark.parametrize("target", sorted(folder.name for folder in fuzz_python.CORPUS.iterdir()))
def test_what_once_was_a_traceback(tmp_path: Path, target: str) -> None:
    assert fuzz_python.read_corpus(target, tmp_path / target) > 0


@pytest.mark.all
@pytest.mark.parametrize("target", IN_PYTHON)
def test_python_says_what_is_wrong_in_many_rounds(tmp_path: Path, target: str) -> None:
    fuzz_python.fuzz(target, tmp_path / target, SEED + 1, IN_PYTHON[target][1])


@pytest.mark.soak
@pytest.mark.parametrize("target", IN_PYTHON)
def test_python_says_what_is_wrong_in_a_hundred_thousand_rounds(tmp_path: Path, target: str) -> None:
    fuzz_python.fuzz(target, tmp_path / target, SEED + 2, MILLION // 10)


def test_second_tier_has_twenty_thousand_rounds() -> None:
    assert sum(rounds for _, rounds in (*IN_C.values(), *IN_PYTHON.values())) == 20_000
