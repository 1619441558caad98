"""The errors of a release's package that its extension has not. This file goes into the package."""

from __future__ import annotations


class MissingVariant(RuntimeError):
    """A call that the release has no unit for; the message ends with the spec that would make one."""
