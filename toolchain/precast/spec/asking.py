"""What is reached along edges that are followed only when one of certain names is asked of where they begin.

In: nodes and their edges; sets of names are numbers, a bit for each name. Out: what is asked of every node that is
reached. Names pass through nodes that lead to each other at once, so that the time grows with the edges alone, however
many names there are and whatever circles the edges make.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """Followed when one of `needed` is asked of its node, without `needed` always.

    Its targets are asked for `added`, and for all that is asked of its node.
    """

    needed: int
    added: int
    targets: tuple[int, ...]


def reach(starts: Sequence[int], edges_of: Callable[[int], Sequence[Edge]]) -> dict[int, int]:
    """The nodes that are reached from `starts`, with what is asked of each: the least that the edges agree with."""
    asked = dict.fromkeys(starts, 0)

    def followed(node: int) -> list[Edge]:
        return [edge for edge in edges_of(node) if not edge.needed or edge.needed & asked[node]]

    while True:
        seen: dict[int, list[Edge]] = {}

        def next_of(node: int, seen: dict[int, list[Edge]] = seen) -> Iterator[int]:
            seen[node] = followed(node)
            for edge in seen[node]:
                for target in edge.targets:  # told already here, a chain of needs is followed to its end
                    asked[target] = asked.get(target, 0) | asked[node] | edge.added
                    yield target

        for circle in reversed(find_circles(starts, next_of)):
            _pass_on(circle, seen, asked)
        if all(len(followed(node)) == len(edges) for node, edges in seen.items()):
            return asked


def _pass_on(circle: list[int], seen: dict[int, list[Edge]], asked: dict[int, int]) -> None:
    """What is asked of one node of a circle is asked of all, and of what they lead to."""
    members = set(circle)
    total = 0
    for node in circle:
        total |= asked[node]
        for edge in seen[node]:
            if not members.isdisjoint(edge.targets):
                total |= edge.added
    for node in circle:
        asked[node] = total
        for edge in seen[node]:
            for target in edge.targets:
                asked[target] |= total | edge.added


def find_circles(starts: Iterable[int], next_of: Callable[[int], Iterator[int]]) -> list[list[int]]:
    """The nodes in groups that lead to each other, each group after those that it leads to (Tarjan's algorithm)."""
    place: dict[int, float] = {}  # the earliest node of the way here that a node leads back to; infinite once grouped
    groups: list[list[int]] = []
    waiting: list[int] = []
    for start in starts:
        way = [] if start in place else [_enter(start, place, waiting, next_of)]
        while way:
            node, first, following = way[-1]
            target = next(following, None)
            if target is None:
                way.pop()
                if way:
                    above = way[-1][0]
                    place[above] = min(place[above], place[node])
                if place[node] == first:
                    groups.append(_take_group(node, place, waiting))
            elif target in place:
                place[node] = min(place[node], place[target])
            else:
                way.append(_enter(target, place, waiting, next_of))
    return groups


def _enter(
    node: int, place: dict[int, float], waiting: list[int], next_of: Callable[[int], Iterator[int]]
) -> tuple[int, int, Iterator[int]]:
    place[node] = first = len(place)
    waiting.append(node)
    return node, first, next_of(node)


def _take_group(node: int, place: dict[int, float], waiting: list[int]) -> list[int]:
    group = [waiting.pop()]
    while group[-1] != node:
        group.append(waiting.pop())
    place.update(dict.fromkeys(group, math.inf))
    return group
