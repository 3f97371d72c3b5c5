"""Converts a torch network to an ONNX graph, with one rule per traced operation.

If an operation has no rule, torch's exporter converts the network instead. It takes
seconds, needs the package onnxscript, and supports nearly all operations. Its graph
optimisation is off, because folded weights could not be replaced later.

Legend: B batch, H W board, A actions.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tengen.distribution import pip_install
from tengen.errors import RunError
from tengen.models.onnx_rules import OPSET, RULES, GraphBuilder, NoRuleError, Value
from tengen.nets import InferenceHead, Net
from tengen.nets.modules.exporting import exporting
from tengen.tensors import Signature, TensorSpec

if TYPE_CHECKING:
    from torch.export import ExportedProgram

# An InferenceHead adds this prefix to the names of the network's tensors.
_PREFIX = "net."
# Arguments of torch functions that do not affect the result in a graph.
_NO_MATTER = ("inplace", "memory_format", "momentum", "_stacklevel")
# Names of the first arguments of torch's functions, in order; synonyms of arguments.
_FIRST_NAMES = ("input", "tensors", "other")
_SAME_NAMES = {"axis": "dim"}
# The properties of tensors that a network may read.
_SHAPE = "torch.Tensor.shape.__get__"
_PROPERTIES = (
    _SHAPE,
    "torch.Tensor.device.__get__",
    "torch.Tensor.dtype.__get__",
    "torch.Tensor.ndim.__get__",
)

_Axes = list[str | int]


def trace(head: InferenceHead, signature: Signature) -> onnx.ModelProto:
    """Returns the ONNX graph of a network, with the network's tensor names.

    Args:
        head: The network, float32 on the CPU, in evaluation mode, with the inputs and
            outputs of the signature, in the same order.
        signature: The signature, without state. The batch axis is dynamic. H and W of
            a board are dynamic too, unless the policy is flat or the size is fixed.

    Returns:
        A graph whose inputs and outputs have the signature's names.

    Raises:
        RunError: The network cannot be traced, or has an operation that neither the
            rules nor torch's exporter support.
    """
    is_fixed = head.net.config.fixed_size
    board = signature.board
    any_size = board is not None and board.policy_layout != "flat" and not is_fixed
    try:
        runs = [_followed(head, signature, any_size, num_rows) for num_rows in (2, 3)]
        if any(reads_sizes for _, reads_sizes in runs):
            # Compare a third size, because the network may branch on a size.
            runs.append(_followed(head, signature, any_size, 64))
    except NoRuleError as error:
        return _export_by_torch(head, signature, any_size, str(error))
    graph = runs[0][0]
    if any(other != graph for other, _ in runs):
        reason = "network (its operations) depends on the size of its inputs"
        return _export_by_torch(head, signature, any_size, reason)
    return graph


def _followed(
    head: InferenceHead, signature: Signature, any_size: bool, num_rows: int
) -> tuple[onnx.ModelProto, bool]:
    """Translates the operations that a network calls for ``num_rows`` rows.

    Returns:
        The graph, and whether the network reads the size of a tensor.

    Raises:
        NoRuleError: An operation has no rule, or the network rejects the rows.
        RunError: The network uses a tensor that is not in its state.
    """
    examples = {
        name: torch.from_numpy(spec.zeros(num_rows))
        for name, spec in signature.inputs.items()
    }
    if any_size:
        # Use a different board size for each number of rows.
        more = num_rows.bit_length() - 1
        examples["planes"] = functional.pad(
            examples["planes"], (0, more, 0, 2 * more + num_rows % 2)
        )
    followed = _Followed(head.net, examples)
    try:
        with torch.no_grad(), exporting(), followed:
            outputs = head(*examples.values())
    except RunError:
        raise
    except Exception as error:
        raise NoRuleError(f"network ({type(head.net).__name__}) fails") from error
    return followed.model(signature, outputs, any_size), followed.reads_sizes


class _Followed(TorchFunctionMode):
    """A context manager that translates the torch calls in its block to ONNX nodes."""

    def __init__(self, net: Net, inputs: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.reads_sizes = False
        self._graph = GraphBuilder()
        self._net = net
        self._state = net.state_dict(keep_vars=True)
        # Values by their tensors' id(). Holds the tensors, so that no id is reused.
        self._values: dict[int, tuple[Value, Tensor]] = {}
        self._weights = {id(tensor): name for name, tensor in self._state.items()}
        for name, tensor in inputs.items():
            self._bind(tensor, Value(name))

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Calls a torch function, and adds the equivalent nodes to the graph."""
        kwargs = kwargs or {}
        given = list(_tensors((args, *kwargs.values())))
        versions = [tensor._version for tensor in given]
        result = func(*args, **kwargs)
        name = _name(func)
        if versions != [tensor._version for tensor in given]:
            raise NoRuleError(f"operation ({name}, in place) has no ONNX rule")
        if not isinstance(result, Tensor):
            # Any other result depends on data, but would be a constant of the graph.
            if name not in _PROPERTIES:
                raise NoRuleError(f"operation ({name}) has no ONNX rule")
            self.reads_sizes |= name == _SHAPE
        elif id(result) not in self._values and id(result) not in self._weights:
            self._add(name, args, kwargs, result)
        return result

    def _add(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: Tensor,
    ) -> None:
        rule = RULES.get(name.rpartition(".")[2])
        if rule is None:
            raise NoRuleError(f"operation ({name}) has no ONNX rule")
        words = {
            _SAME_NAMES.get(key, key): word
            for key, word in kwargs.items()
            if key not in _NO_MATTER and word is not None
        }
        args = (*args, *(words.pop(key) for key in _FIRST_NAMES if key in words))
        try:
            value = rule(self._graph, *self._of(args), **self._of(words))
        except TypeError as error:
            raise NoRuleError(
                f"operation ({name}) has arguments without an ONNX rule, {error}"
            ) from error
        self._bind(result, value)

    def _of(self, argument: Any) -> Any:
        """Returns a copy of an argument with ``Value`` objects in place of tensors."""
        if isinstance(argument, Tensor):
            return self._value(argument)
        if isinstance(argument, slice):
            return slice(*self._of((argument.start, argument.stop, argument.step)))
        if isinstance(argument, Mapping):
            return {key: self._of(one) for key, one in argument.items()}
        if type(argument) in (tuple, list):
            return type(argument)(self._of(one) for one in argument)
        return argument

    def _value(self, tensor: Tensor) -> Value:
        if id(tensor) in self._values:
            return self._values[id(tensor)][0]
        name = self._weights.get(id(tensor))
        if name is None:
            for unsaved, buffer in self._net.named_buffers():
                if buffer is tensor:
                    raise RunError(
                        f"network tensor ({unsaved}) is not in its state; make "
                        f"it a parameter or a persistent buffer"
                    )
            raise NoRuleError(
                f"constant tensor ({list(tensor.shape)}) has no ONNX rule"
            )
        return self._bind(tensor, Value(name))

    def _bind(self, tensor: Tensor, value: Value) -> Value:
        value.num_axes = tensor.ndim
        value.dtype = str(tensor.dtype)
        self._values[id(tensor)] = value, tensor
        return value

    def model(
        self, signature: Signature, results: tuple[Tensor, ...], any_size: bool
    ) -> onnx.ModelProto:
        """Returns the complete ONNX model, without nodes that no output needs."""
        names = tuple(signature.outputs)
        if len(results) != len(names):
            raise RunError(
                f"network outputs ({len(results)}) must be {', '.join(names)}; "
                f"export an InferenceHead"
            )
        for name, result in zip(names, results, strict=True):
            value = self._value(result)
            node = onnx.helper.make_node("Identity", [value], [name])
            self._graph.nodes.append(node)
        needed = set(names)
        nodes = []
        for node in reversed(self._graph.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                nodes.append(node)
        inputs: dict[str, _Axes] = {
            name: ["B", *spec.shape] for name, spec in signature.inputs.items()
        }
        outputs: dict[str, _Axes] = {
            name: ["B", *spec.shape] for name, spec in signature.outputs.items()
        }
        if any_size:
            inputs["planes"][2:] = ["H", "W"]
        if signature.board is not None:
            outputs["policy"][1:] = ["A"]
        graph = onnx.helper.make_graph(
            nodes[::-1],
            "tengen",
            [_described(n, signature.inputs[n], axes) for n, axes in inputs.items()],
            [_described(n, signature.outputs[n], axes) for n, axes in outputs.items()],
            [
                onnx.numpy_helper.from_array(tensor.detach().numpy(), name)
                for name, tensor in self._state.items()
                if name in needed
            ],
        )
        opset = onnx.helper.make_opsetid("", OPSET)
        return onnx.helper.make_model(
            graph, opset_imports=[opset], ir_version=8, producer_name="tengen"
        )


def _tensors(argument: Any) -> Iterator[Tensor]:
    """Yields the tensors in an argument, including those in nested tuples and lists."""
    if isinstance(argument, Tensor):
        yield argument
    elif isinstance(argument, tuple | list):
        for one in argument:
            yield from _tensors(one)


def _name(func: Callable[..., Any]) -> str:
    return str(torch.overrides.resolve_name(func) or getattr(func, "__name__", func))


def _described(name: str, spec: TensorSpec, axes: _Axes) -> onnx.ValueInfoProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
    return onnx.helper.make_tensor_value_info(name, kind, axes)


_ADVICE = "set inference.backend=torch"


def _export_by_torch(
    head: InferenceHead, signature: Signature, any_size: bool, reason: str
) -> onnx.ModelProto:
    """Exports a network to an ONNX graph with torch's exporter.

    Args:
        head: The network.
        signature: The signature, with inputs and outputs in the same order as ``head``.
        any_size: Whether H and W of a board are dynamic.
        reason: Why the rules cannot convert the network, for error messages.

    Raises:
        RunError: The network cannot be traced, onnxscript is not installed, or the
            exporter fails.
    """
    program = _program(head, signature, any_size)
    if importlib.util.find_spec("onnxscript") is None:
        raise RunError(
            f"{reason}, and torch's exporter needs onnxscript; {_ADVICE}, or "
            f"{pip_install('onnxscript')}"
        )
    names = set(head.net.state_dict())
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = torch.onnx.export(
                program, dynamo=True, optimize=False, verbose=False
            )
        assert made is not None
        graph: onnx.ModelProto = made.model_proto
    except Exception as error:
        words = str(error).strip().partition("\n")[0]
        raise RunError(
            f"{reason}, and torch's exporter fails: {words}; {_ADVICE}"
        ) from error
    finally:
        logger.setLevel(level)
    _rename(graph.graph, signature, _PREFIX, names)
    found = {item.name for item in graph.graph.initializer}
    if lost := sorted(_used(program, _PREFIX) - found):
        raise RunError(
            f"{reason}, and torch's exporter folds tensor ({lost[0]}), so that its "
            f"weights cannot be replaced; {_ADVICE}"
        )
    return graph


def _program(
    head: InferenceHead, signature: Signature, any_size: bool
) -> ExportedProgram:
    from torch.export import Dim, export

    batch, size = Dim("B"), {2: Dim("H"), 3: Dim("W")} if any_size else {}
    # Use two rows, because torch would treat a batch size of 1 as a constant.
    examples = tuple(
        torch.from_numpy(spec.zeros(2)) for spec in signature.inputs.values()
    )
    axes = tuple(
        {0: batch, **(size if name == "planes" else {})} for name in signature.inputs
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return export(head, examples, dynamic_shapes=(axes,))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise RunError(
            f"network ({type(head.net).__name__}) cannot be traced: {reason}; use no "
            f"fixed batch size, or {_ADVICE}"
        ) from error


def _used(program: ExportedProgram, prefix: str) -> set[str]:
    """Returns the names of the network tensors that an exported program reads."""
    from torch.export.graph_signature import InputKind

    read = {n.name for n in program.graph.nodes if n.op == "placeholder" and n.users}
    return {
        str(spec.target).removeprefix(prefix)
        for spec in program.graph_signature.input_specs
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER)
        and spec.arg.name in read
    }


def _rename(
    graph: onnx.GraphProto, signature: Signature, prefix: str, names: Set[str]
) -> None:
    """Renames weights to the network's names; other initializers become constants.

    Identity nodes connect old and new names, so that subgraphs need no change.
    """
    before: list[onnx.NodeProto] = []
    after: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    make = onnx.helper.make_node
    for item in graph.initializer:
        old = item.name
        name = old.removeprefix(prefix)
        if name in names:
            item.name = name
            weights.append(item)
            before.append(make("Identity", [name], [old]))
        else:
            before.append(make("Constant", [], [old], value=item))
    for value, name in zip(graph.input, signature.inputs, strict=True):
        before.append(make("Identity", [name], [value.name]))
        value.name = name
    for value, name in zip(graph.output, signature.outputs, strict=True):
        after.append(make("Identity", [value.name], [name]))
        value.name = name
    nodes = [*before, *graph.node, *after]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(weights)
