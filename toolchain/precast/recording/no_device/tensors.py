"""PyTorch's tensors on a device that is not there: shapes, types, strides and addresses, and values as far as known.

In: `torch`, as the program has imported it. Out: a program that creates, moves and computes tensors on the device as
ever; autograd, modules and optimizers too. What is on the host is computed as ever. What a Python function implements
for the device, as libraries' operators are, runs.

Tensors are PyTorch's own fake ones. To C++ they are on the meta device, for only that one is in every build; to the
program, to Triton and to the choice of operators they are on the device.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from precast.recording.no_device import autocast, cuda
from precast.recording.no_device.assumed import note_of_read
from precast.recording.no_device.memory import Memory
from precast.recording.no_device.operators import Operators
from precast.recording.notes import Unsaid
from precast.target import Target

SAVED = "it saves tensors, which have no values without a device: nothing is written"
_ADDRESS_BITS = 8  # allocators align memory to 256 bytes at least
_DEVICE = "cuda"  # as PyTorch calls AMD's, too


class Tensors:
    """Starts tensors of the device; `note` gets where the program reads what is not known."""

    def __init__(self, torch: Any, target: Target, note: Callable[[Unsaid], None]) -> None:
        from torch._subclasses import fake_tensor
        from torch.utils import _pytree

        self.torch = torch
        self.note = note
        self.memory = Memory(torch)
        self.leaves: Callable[..., list[Any]] = _pytree.arg_tree_leaves
        self.kind = fake_tensor.FakeTensor
        self.fake = _make_fake_mode(torch, fake_tensor)
        self.operators = Operators(torch, self.kind, self.fake, self.memory, note)
        fake_tensor.init_gpu_context = lambda device: None
        cuda.start(torch, target)
        torch._C._set_only_lift_cpu_tensors(True)
        torch._C._ensureCUDADeviceGuardSet()
        _put_on_meta(torch, self.kind)
        self.kind.item = lambda tensor: self.operators.read_number(tensor)
        _keep_files(torch, note)
        _enter_everywhere(lambda: (_make_dispatch_mode(self), _make_function_mode(torch, self.kind)))

    def find(self, values: Any) -> list[Any]:
        """Tensors of the device among values, in tuples and descriptors too."""
        leaves = [each for value in values for each in self.leaves(value)]
        found = [getattr(each, "base", each) if hasattr(each, "block_shape") else each for each in leaves]
        return [each for each in found if isinstance(each, self.kind)]

    def launched(self, values: tuple[Any, ...]) -> None:
        self.memory.doubt(self.find(values))


def _enter_everywhere(make: Callable[[], tuple[Any, ...]]) -> None:
    """Enters modes in this thread, and in all that begin from now on."""
    run = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def run_within(thread: threading.Thread) -> None:
        with contextlib.ExitStack() as stack:
            for mode in make():
                stack.enter_context(mode)
            run(thread)

    threading.Thread._bootstrap_inner = run_within  # type: ignore[attr-defined]
    for mode in make():
        mode.__enter__()


def _make_fake_mode(torch: Any, fake_tensor: Any) -> Any:
    class Fake(fake_tensor.FakeTensorMode):  # type: ignore[misc]
        """PyTorch's, for which the meta device that C++ code names is the device."""

        avoid_device_init = True

        def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            device = kwargs.get("device")
            if isinstance(device, torch.device) and device.type == "meta":
                kwargs["device"] = torch.device(_DEVICE, 0)
            return super().dispatch(func, types, args, kwargs)

    return Fake(allow_non_fake_inputs=True)


def _put_on_meta(torch: Any, kind: Any) -> None:
    make = torch.Tensor._make_subclass

    def make_subclass(cls: Any, data: Any, *rest: Any, **keywords: Any) -> Any:
        if issubclass(cls, kind):
            keywords["dispatch_device"] = False
        return make(cls, data, *rest, **keywords)

    def address(tensor: Any) -> int:
        if not tensor.numel():
            return 0
        storage: int = tensor.untyped_storage()._cdata << _ADDRESS_BITS
        return storage % (1 << 56) + int(tensor.storage_offset()) * int(tensor.element_size())

    torch.Tensor._make_subclass = staticmethod(make_subclass)
    torch.Tensor.pin_memory = lambda tensor, *_: tensor
    kind.data_ptr = address
    kind.is_cuda = property(lambda tensor: tensor.device.type == _DEVICE)
    kind.is_cpu = property(lambda tensor: tensor.device.type == "cpu")
    kind.is_meta = property(lambda tensor: False)
    kind.get_device = lambda tensor: tensor.device.index if tensor.device.type == _DEVICE else -1
    kind.is_pinned = lambda tensor, *_: False
    kind.record_stream = lambda tensor, stream: None


def _keep_files(torch: Any, note: Callable[[Unsaid], None]) -> None:
    """Nothing that has no values is saved, and what is loaded onto the device is loaded onto the host first."""
    load = torch.load

    def save(*_: Any, **__: Any) -> None:
        note(note_of_read(SAVED))

    def load_on_host(file: Any, map_location: Any = None, *arguments: Any, **keywords: Any) -> Any:
        found = load(file, "cpu", *arguments, **keywords)
        if not isinstance(map_location, (str, torch.device)) or torch.device(map_location).type != _DEVICE:
            return found
        return torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(map_location), found)

    torch.save, torch.load = save, load_on_host


def _make_function_mode(torch: Any, kind: Any) -> Any:
    from torch.overrides import TorchFunctionMode

    def with_index(value: Any) -> Any:
        """A device with its number, which only a device could be asked for."""
        if value == _DEVICE or (isinstance(value, torch.device) and value.type == _DEVICE and value.index is None):
            return torch.device(_DEVICE, 0)
        return value

    class Devices(TorchFunctionMode):  # type: ignore[misc]
        """Says what PyTorch's own C++ would have to ask a device."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = {name: with_index(value) for name, value in (kwargs or {}).items()}
            args = tuple(with_index(value) if isinstance(value, (str, torch.device)) else value for value in args)
            if func is torch.Tensor.cuda:
                return args[0].to(torch.device(_DEVICE, 0))
            kwargs.pop("pin_memory", None)
            args, kwargs = autocast.cast(torch, kind, func, args, kwargs)
            if func in (torch.tensor, torch.as_tensor, torch.asarray) and kwargs.get("device") is not None:
                device = kwargs.pop("device")
                wanted = {"requires_grad": kwargs.pop("requires_grad", False)} if func is torch.tensor else {}
                made = func(*args, **kwargs).to(device)
                return made.requires_grad_() if wanted.get("requires_grad") else made
            return func(*args, **kwargs)

    return Devices()


def _make_dispatch_mode(tensors: Tensors) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    torch, kind = tensors.torch, tensors.kind

    class Device(TorchDispatchMode):  # type: ignore[misc]
        """Takes what concerns the device; all else runs on the host."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if any(not issubclass(each, kind) and _is_wrapper(torch, each) for each in types):
                return NotImplemented
            leaves = tensors.leaves(*args, **kwargs)
            if not any(
                isinstance(each, kind) or (isinstance(each, torch.device) and each.type == _DEVICE) for each in leaves
            ):
                return func(*args, **kwargs)
            key = _find_python_kernel(torch, func)
            if key is not None:
                with self:
                    return func._op_dk(key, *args, **kwargs)
            return tensors.operators.run(func, args, kwargs, leaves)

    return Device()


def _is_wrapper(torch: Any, kind: Any) -> bool:
    return kind not in (torch.Tensor, torch.nn.Parameter) and "__torch_dispatch__" in vars(kind)


def _find_python_kernel(torch: Any, func: Any) -> Any:
    """The key under which Python code implements an operator for the device."""
    keys = torch._C.DispatchKey
    namespace, _, name = func.name().partition("::")
    for key in (keys.CUDA, keys.CompositeExplicitAutograd):
        if f"{namespace}/{name}/{key.name}" in torch.library._impls:
            return key
    return None
