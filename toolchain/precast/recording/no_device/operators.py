"""What PyTorch's operators come to on a device that is not there.

In: an operator with its arguments. Out: tensors of the device, which have their values where those of all arguments are
known. Where the program reads values that are not, it gets others, and that is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from precast.recording.no_device.assumed import ANY_INTEGER, AssumedInteger, note_of_read
from precast.recording.no_device.memory import MOST_BYTES, Memory
from precast.recording.notes import Unsaid

UNKNOWN = "it reads values of a tensor, which only a device computes: it goes on with others"
DOUBT = "it reads values of a tensor that a kernel may have written: it goes on with those from before"
SIZES = "the size of a tensor depends on values, which only a device computes: it goes on with another"


class Operators:
    """Runs operators on tensors of the device: `kind` is their class, `fake` the mode that computes shapes."""

    def __init__(self, torch: Any, kind: Any, fake: Any, memory: Memory, note: Callable[[Unsaid], None]) -> None:
        from torch.utils import _pytree

        self._torch = torch
        self._kind = kind
        self._fake = fake
        self._memory = memory
        self._note = note
        self._leaves: Callable[..., list[Any]] = _pytree.arg_tree_leaves
        self._map: Callable[..., Any] = _pytree.tree_map_only
        aten = torch.ops.aten
        self._reads: dict[Any, Callable[..., Any]] = {
            aten._local_scalar_dense.default: self.read_number,
            aten.equal.default: self._compare,
        }
        self._guesses: dict[Any, Callable[..., Any]] = {
            aten.nonzero.default: self._guess_places,
            aten.index.Tensor: self._guess_masked,
            aten.masked_select.default: self._guess_selected,
            aten.repeat_interleave.Tensor: self._guess_repeated,
            aten._unique2.default: self._guess_distinct,
        }
        self._overwriting = (aten.zero_.default, aten.fill_.Scalar, aten.fill_.Tensor, aten.copy_.default)
        self._any = (aten.any.default, aten.any.dim)

    def run(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], leaves: Sequence[Any]) -> Any:
        """An operator's results; `leaves` are all its arguments, those in lists too."""
        given = [each for each in leaves if isinstance(each, self._torch.Tensor)]
        if func in self._reads:
            return self._reads[func](*args, **kwargs)
        host = self._find_host_copy(func, args, kwargs)
        if host is not None:
            return host
        if func in self._overwriting:
            self._prepare_overwriting(args, given)
        known = [self._read(each) for each in given]
        is_known = all(each is not None for each in known) and self._can_compute(func)
        if self._is_sized_by_values(func, args):
            if not is_known:
                return self._guess(func, args, kwargs)
            values = self._compute(func, args, kwargs, given, known)
            results = self._map(self._torch.Tensor, self._make, values)
        else:
            with self._fake:
                results = func(*args, **kwargs)
            fits = sum(each.nbytes for each in self._leaves(results) if isinstance(each, self._kind)) <= MOST_BYTES
            values = self._compute(func, args, kwargs, given, known) if is_known and fits else None
        self._keep(func, args, kwargs, results, values, given)
        return results

    def _on_device(self, values: Sequence[Any]) -> list[Any]:
        return [each for each in values if isinstance(each, self._kind)]

    def _read(self, tensor: Any) -> Any:
        """The values of a tensor of the device, or a small one of the host; else None."""
        if isinstance(tensor, self._kind):
            return self._memory.read(tensor)
        is_small = tensor.layout == self._torch.strided and tensor.nbytes <= MOST_BYTES
        return tensor.detach() if is_small else None

    def _can_compute(self, func: Any) -> bool:
        """Whether the host comes to the same values: memory as it was allocated has none, and numbers are at random."""
        name = func._schema.name.partition("::")[2]
        at_random = self._torch.Tag.nondeterministic_seeded in func.tags
        return not at_random and not name.startswith(("empty", "new_empty", "resize"))

    def _compute(self, func: Any, args: Any, kwargs: Any, given: Sequence[Any], known: Sequence[Any]) -> Any:
        """An operator's results on the host."""
        by_tensor = {id(tensor): value for tensor, value in zip(given, known, strict=True)}
        args, kwargs = self._map(self._torch.Tensor, lambda tensor: by_tensor[id(tensor)], (tuple(args), dict(kwargs)))
        devices = {"device": self._torch.device("cpu")} if kwargs.get("device") is not None else {}
        return func(*args, **{**kwargs, **devices})

    def _keep(self, func: Any, args: Any, kwargs: Any, results: Any, values: Any, given: Sequence[Any]) -> None:
        """Keeps the values of results, or forgets those of what was written to."""
        if values is None:
            # what scaled gradients are looked through for is not there, so that the optimizer steps
            is_found = func is self._torch.ops.aten._amp_foreach_non_finite_check_and_unscale_.default
            self._memory.forget(self._on_device(args[0]) if is_found else self._written(func, args, kwargs))
            if func in self._any:
                results.is_any = True
            return
        doubt = self._memory.in_doubt(self._on_device(given))
        for result, value in zip(self._leaves(results), self._leaves(values), strict=True):
            if isinstance(result, self._kind):
                self._memory.write(result, value, doubt)
        if doubt:
            self._memory.doubt(self._written(func, args, kwargs))

    def _written(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        named = {**dict(zip((each.name for each in func._schema.arguments), args, strict=False)), **kwargs}
        written = [
            named[each.name]
            for each in func._schema.arguments
            if each.alias_info is not None and each.alias_info.is_write and each.name in named
        ]
        return self._on_device(self._leaves(written))

    def _prepare_overwriting(self, args: Sequence[Any], given: Sequence[Any]) -> None:
        """What is overwritten as a whole need not be known before."""
        target = args[0]
        if isinstance(target, self._kind) and all(self._read(each) is not None for each in given[1:]):
            self._memory.write(target, self._torch.zeros((), dtype=target.dtype), False)

    def _make(self, like: Any) -> Any:
        """A tensor of the device with the shape and type of one of the host."""
        return self._make_empty(like.size(), like.dtype)

    def _make_empty(self, size: Sequence[int], dtype: Any) -> Any:
        with self._fake:
            return self._torch.empty(size, dtype=dtype, device="cuda:0")

    # Reads: what goes from the device to the host.

    def read_number(self, tensor: Any) -> Any:
        """What `tensor.item()` is. PyTorch's own would make a plain number of one that is assumed."""
        if tensor.numel() != 1:
            raise RuntimeError(f"a Tensor with {tensor.numel()} elements cannot be converted to Scalar")
        found = self._find_likely(tensor)
        if found is None:
            self._note(note_of_read(UNKNOWN))
            return self._guess_number(tensor)
        value = found.item()
        if self._memory.in_doubt([tensor]):
            self._note(note_of_read(DOUBT))
            return AssumedInteger(value) if type(value) is int else value
        return value

    def _find_likely(self, tensor: Any) -> Any:
        """The values that a tensor is likely to have. Zeros are what programs put where a kernel writes."""
        found = self._read(tensor)
        is_result = found is not None and self._memory.in_doubt(self._on_device([tensor])) and not found.any()
        return None if is_result else found

    def _guess_number(self, tensor: Any) -> Any:
        """Whether there is any of what programs look out for: no. All else goes well."""
        if tensor.dtype == self._torch.bool:
            return not getattr(tensor, "is_any", False)
        return 1.0 if tensor.dtype.is_floating_point else 1j if tensor.dtype.is_complex else AssumedInteger()

    def _compare(self, one: Any, other: Any) -> bool:
        found = [self._find_likely(one), self._find_likely(other)]
        if any(each is None for each in found):
            self._note(note_of_read(UNKNOWN))
            return bool(one.shape == other.shape)
        return bool(self._torch.equal(*found))

    def _find_host_copy(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """What a copy of a tensor of the device to the host is; None for any other operator."""
        aten = self._torch.ops.aten
        device = kwargs.get("device")
        if func is aten._to_copy.default and device is not None and device.type == "cpu":
            return func(self._read_all(args[0]), **kwargs)
        if func is aten.copy_.default and not isinstance(args[0], self._kind):
            return func(args[0], self._read_all(args[1]))
        return None

    def _read_all(self, tensor: Any) -> Any:
        found = self._find_likely(tensor)
        if found is None:
            self._note(note_of_read(UNKNOWN))
            number = self._guess_number(tensor)
            return self._torch.full(tensor.size(), number, dtype=tensor.dtype)
        if self._memory.in_doubt(self._on_device([tensor])):
            self._note(note_of_read(DOUBT))
        return found

    # Sizes that depend on values.

    def _is_sized_by_values(self, func: Any, args: Sequence[Any]) -> bool:
        if func is self._torch.ops.aten.index.Tensor:
            return any(each is not None and self._is_mask(each) for each in args[1])
        return self._torch.Tag.dynamic_output_shape in func.tags

    def _is_mask(self, index: Any) -> bool:
        return index.dtype in (self._torch.bool, self._torch.uint8)

    def _guess(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if func is self._torch.ops.aten.repeat_interleave.Tensor and kwargs.get("output_size") is not None:
            return self._make_empty((kwargs["output_size"],), self._torch.int64)
        self._note(note_of_read(SIZES))
        if func in self._guesses:
            return self._guesses[func](*args, **kwargs)
        with self._fake:
            return func(*args, **kwargs)  # which says what it cannot do

    @staticmethod
    def _some(count: int) -> int:
        """Nearly all of so many: no multiple of 16, nor 1, where that can be."""
        return count - 1 if count > 2 and count % 2 == 0 else count

    def _guess_places(self, tensor: Any) -> Any:
        return self._make_empty((self._some(tensor.numel()), tensor.dim()), self._torch.int64)

    def _guess_masked(self, tensor: Any, indices: Sequence[Any]) -> Any:
        every: list[Any] = []
        for index in indices:
            is_mask = index is not None and self._is_mask(index)
            every += self._guess_places(index).unbind(1) if is_mask else [index]
        with self._fake:
            return self._torch.ops.aten.index.Tensor(tensor, every)

    def _guess_selected(self, tensor: Any, mask: Any) -> Any:
        return self._make_empty((self._some(max(tensor.numel(), mask.numel())),), tensor.dtype)

    def _guess_repeated(self, repeats: Any, **_: Any) -> Any:
        return self._make_empty((self._some(ANY_INTEGER * repeats.numel()),), self._torch.int64)

    def _guess_distinct(self, tensor: Any, *_: Any, **__: Any) -> Any:
        count = self._some(tensor.numel())
        long = self._torch.int64
        return (
            self._make_empty((count,), tensor.dtype),
            self._make_empty(tensor.shape, long),
            self._make_empty((count,), long),
        )
