"""The identity of everything that makes a release: compilers, assemblers, bindings, and Precast's own parts.

In: the import system as workers see it, this package's sources. Out: (name, identity) pairs: a version and 12 hex
digits over the bytes that would be imported, or "not installed". Told once, here; jobs carry it, nobody else asks.
"""

from precast.identity.memory import identity_memory
from precast.identity.own import digest_own
from precast.identity.tools import Identities, Tools, merge_tools, select_tools

__all__ = ["Identities", "Tools", "digest_own", "identity_memory", "merge_tools", "select_tools"]
