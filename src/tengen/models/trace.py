"""Turns a torch network into an ONNX graph: one rule for each traced operation.

Networks with an operation without a rule go through torch's exporter. It takes seconds
and the package onnxscript, and knows nearly every operation. It must not optimise, or
it would fold weights into each other, and they could no longer be patched.

Legend: B batch, H W board, A actions.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Set
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from tengen.distribution import pip_install
from tengen.errors import RunError
from tengen.models.onnx_rules import OPSET, RULES, GraphBuilder, NoRuleError, Value
from tengen.nets import InferenceHead
from tengen.tensors import Signature, TensorSpec

__all__ = ["export_by_torch", "trace"]

# Assertions about dtypes that torch inserts for its own compiler.
_IGNORED = "aten._assert_tensor_metadata.default"
# The prefix of the network's own names within the head.
_PREFIX = "net."
# Tensors that training may change.
_KEPT = (InputKind.PARAMETER, InputKind.BUFFER)

_Axes = list[str | int]


def trace(head: InferenceHead, signature: Signature) -> onnx.ModelProto:
    """Returns the ONNX graph of a network, whose tensors keep their names.

    Args:
        head: The network, float32 on the CPU, in evaluation mode; with the
            signature's inputs and outputs, in its order.
        signature: The signature, without state. The batch axis is dynamic, and so are
            H and W of a board, except for nets with a flat policy or a fixed size.

    Returns:
        A graph whose inputs and outputs have the signature's names.

    Raises:
        RunError: The network cannot be traced, or has an operation that neither the
            rules nor torch's exporter support.
    """
    is_fixed = head.net.config.fixed_size
    board = signature.board
    any_size = board is not None and board.policy_layout != "flat" and not is_fixed
    batch, size = Dim("B"), {2: Dim("H"), 3: Dim("W")} if any_size else {}
    # A batch of one would be taken for a constant.
    examples = tuple(
        torch.from_numpy(spec.zeros(2)) for spec in signature.inputs.values()
    )
    axes = tuple(
        {0: batch, **(size if name == "planes" else {})} for name in signature.inputs
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(head, examples, dynamic_shapes=(axes,))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise RunError(
            f"network ({type(head.net).__name__}) cannot be traced: {reason}; keep its "
            f"shapes free or set inference.backend=torch"
        ) from error
    state = head.net.state_dict()
    _check_state(program, state)
    try:
        translation = _Translation(program, state, tuple(signature.inputs))
    except NoRuleError as error:
        return export_by_torch(program, signature, _PREFIX, set(state), str(error))
    return translation.model(signature, any_size)


def _check_state(program: ExportedProgram, state: dict[str, Tensor]) -> None:
    for spec in program.graph_signature.input_specs:
        name = (spec.target or "").removeprefix(_PREFIX)
        if spec.kind in _KEPT and name not in state:
            raise RunError(
                f"network tensor ({name}) is not in its state; make "
                f"it a parameter or a persistent buffer"
            )


class _Translation:
    """Walks a traced program node by node."""

    def __init__(
        self,
        program: ExportedProgram,
        state: dict[str, Tensor],
        inputs: tuple[str, ...],
    ) -> None:
        self._inputs = iter(inputs)
        self._graph = GraphBuilder()
        self._initializers: list[onnx.TensorProto] = []
        self._values: dict[Node, Value] = {}
        self._outputs: tuple[Value, ...] = ()
        kinds = {
            spec.arg.name: (spec.kind, spec.target)
            for spec in program.graph_signature.input_specs
        }
        for node in program.graph.nodes:
            if node.op == "placeholder":
                kind, target = kinds[node.name]
                self._add_input(node, kind, target, state)
            elif node.op == "output":
                self._outputs = tuple(self._values[item] for item in node.args[0])
            elif str(node.target) != _IGNORED:
                self._add_operation(node)

    def _add_input(
        self, node: Node, kind: InputKind, target: str | None, state: dict[str, Tensor]
    ) -> None:
        target = (target or node.name).removeprefix(_PREFIX)
        if kind is InputKind.USER_INPUT:
            self._bind(node, Value(next(self._inputs)))
        elif kind not in _KEPT:
            raise NoRuleError(f"constant tensor ({target}) has no ONNX rule")
        elif node.users:
            tensor = state[target].detach().numpy()
            self._initializers.append(onnx.numpy_helper.from_array(tensor, target))
            self._bind(node, Value(target))

    def _add_operation(self, node: Node) -> None:
        rule = RULES.get(str(node.target))
        if rule is None:
            raise NoRuleError(f"operation ({node.target}) has no ONNX rule")
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self._value)
        try:
            value = rule(self._graph, *args, **kwargs)
        except TypeError as error:
            raise NoRuleError(
                f"operation ({node.target}) has arguments without an ONNX rule, {error}"
            ) from error
        self._bind(node, Value(value))

    def _value(self, node: Node) -> Any:
        return self._values[node]

    def _bind(self, node: Node, value: Value) -> None:
        value.num_axes = node.meta["val"].ndim
        value.dtype = str(node.meta["val"].dtype)
        self._values[node] = value

    def model(self, signature: Signature, any_size: bool) -> onnx.ModelProto:
        """Returns the finished graph."""
        names = tuple(signature.outputs)
        if len(self._outputs) != len(names):
            raise RunError(
                f"network outputs ({len(self._outputs)}) must be {', '.join(names)}; "
                f"export an InferenceHead"
            )
        for name, value in zip(names, self._outputs, strict=True):
            node = onnx.helper.make_node("Identity", [value], [name])
            self._graph.nodes.append(node)
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
            self._graph.nodes,
            "tengen",
            [_described(n, signature.inputs[n], axes) for n, axes in inputs.items()],
            [_described(n, signature.outputs[n], axes) for n, axes in outputs.items()],
            self._initializers,
        )
        opset = onnx.helper.make_opsetid("", OPSET)
        return onnx.helper.make_model(
            graph, opset_imports=[opset], ir_version=8, producer_name="tengen"
        )


def _described(name: str, spec: TensorSpec, axes: _Axes) -> onnx.ValueInfoProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
    return onnx.helper.make_tensor_value_info(name, kind, axes)


_ADVICE = "set inference.backend=torch"


def export_by_torch(
    program: ExportedProgram,
    signature: Signature,
    prefix: str,
    names: Set[str],
    reason: str,
) -> onnx.ModelProto:
    """Returns the ONNX graph of a traced network, made by torch's exporter.

    Args:
        program: The traced network.
        signature: Names of its inputs and outputs, in order.
        prefix: The program's prefix of the network's own names.
        names: Every tensor of the network.
        reason: Why the rules do not suffice, for messages.

    Raises:
        RunError: onnxscript is not installed, or the exporter fails.
    """
    if importlib.util.find_spec("onnxscript") is None:
        raise RunError(
            f"{reason}, and torch's exporter needs onnxscript; {_ADVICE}, or "
            f"{pip_install('onnxscript')}"
        )
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
    _rename(graph.graph, signature, prefix, names)
    found = {item.name for item in graph.graph.initializer}
    if lost := sorted(_used(program, prefix) - found):
        raise RunError(
            f"{reason}, and torch's exporter folds tensor ({lost[0]}), which cannot be "
            f"patched then; {_ADVICE}"
        )
    return graph


def _used(program: ExportedProgram, prefix: str) -> set[str]:
    """Returns the tensors of the network that inference reads."""
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
    """Renames tensors to the network's names; other initializers become constants.

    Identity nodes do it, so that graphs inside nodes need no change.
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
