"""Text cut to a terminal's width. In: texts, columns. Out: the text, or its two ends around `…`."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

CUT = "…"


def fit_text(text: str, columns: int) -> str:
    """`text` in at most so many columns; both ends of a name say more than its middle does."""
    if cell_len(text) <= columns:
        return text
    if columns < 1:
        return ""
    end = (columns - 1) // 2
    return set_cell_size(text, columns - 1 - end) + CUT + set_cell_size(text[::-1], end)[::-1]
