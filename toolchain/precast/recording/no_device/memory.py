"""What is known of the memory of a device that is not there.

In: tensors of the device, which have shapes and no memory. Out: tensors of the host with their values, for what is
small: of what came from the host and of what PyTorch computed from that alone. A kernel that was launched with a tensor
may have written to it: what was known is then in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 1 << 18  # of a tensor's memory whose values are kept


@dataclass
class _Known:
    """Bytes of a memory; `doubt`: a kernel may have written there since."""

    storage: Any
    doubt: bool = False


class Memory:
    """Values by the memory that tensors lie in, so that views see what is written to any of them."""

    def __init__(self, torch: Any) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        self._torch = torch
        self._reference = StorageWeakRef
        self._known: dict[Any, _Known] = {}

    def _find(self, tensor: Any) -> _Known | None:
        return self._known.get(self._reference(tensor.untyped_storage()))

    def read(self, tensor: Any) -> Any:
        """A host tensor over the same values; None where they are not known."""
        known = self._find(tensor)
        if known is None or known.storage.nbytes() < tensor.untyped_storage().nbytes():
            return None
        empty = self._torch.empty(0, dtype=tensor.dtype)
        return empty.set_(known.storage, tensor.storage_offset(), tensor.size(), tensor.stride())

    def in_doubt(self, tensors: Iterable[Any]) -> bool:
        return any(known is not None and known.doubt for known in map(self._find, tensors))

    def write(self, tensor: Any, values: Any, doubt: bool) -> None:
        """A tensor's values, where its memory is not known yet."""
        size = tensor.untyped_storage().nbytes()
        if self._find(tensor) is None and size <= MOST_BYTES and self.fills(tensor):
            self._drop_expired()
            known = _Known(self._torch.UntypedStorage(size), doubt)
            self._known[self._reference(tensor.untyped_storage())] = known
            self.read(tensor).copy_(values)

    def fills(self, tensor: Any) -> bool:
        """Whether a tensor is all of its memory."""
        size: int = tensor.untyped_storage().nbytes()
        return bool(size == tensor.numel() * tensor.element_size())

    def doubt(self, tensors: Iterable[Any]) -> None:
        for each in tensors:
            known = self._find(each)
            if known is not None:
                known.doubt = True

    def forget(self, tensors: Iterable[Any]) -> None:
        for each in tensors:
            self._known.pop(self._reference(each.untyped_storage()), None)

    def _drop_expired(self) -> None:
        if len(self._known) % 256 == 255:
            self._known = {reference: known for reference, known in self._known.items() if not reference.expired()}
