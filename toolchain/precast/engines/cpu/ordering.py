"""Walks of value trees that end whatever their depth. In: roots and what each needs. Out: needs before needers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node")


def needed_first(
    roots: Iterable[Node], needs: Callable[[Node], Iterable[Node]], done: Container[Node]
) -> Iterator[Node]:
    """Every node that is not in `done`, each after all that it needs; whoever asks adds it to `done`.

    `needs` is asked again once what it named is done: its answer may depend on that.
    """
    pending = list(roots)
    while pending:
        node = pending[-1]
        if node in done:
            pending.pop()
            continue
        missing = [each for each in needs(node) if each not in done]
        if missing:
            pending += reversed(missing)
            continue
        pending.pop()
        yield node
