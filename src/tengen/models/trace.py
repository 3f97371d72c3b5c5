"""From a torch network to an ONNX graph: trace it once, apply one rule an operation.

Legend: B batch, C planes, H W board, A actions.
"""

from __future__ import annotations

import warnings
from typing import Any

import onnx
import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from tengen.errors import RunError
from tengen.models.onnx_rules import OPSET, RULES, GraphBuilder, Value
from tengen.nets import InferenceHead

__all__ = ["trace"]

# Assertions about dtypes that torch puts in for its own compiler.
_IGNORED = "aten._assert_tensor_metadata.default"
# Names and axes of what a head answers, in its order.
_OUTPUTS: tuple[tuple[str, list[str | int]], ...] = (
    ("policy", ["B", "A"]),
    ("value", ["B"]),
    ("score", ["B", 2]),
)
# What the head puts before the network's own names.
_PREFIX = "net."


def trace(
    head: InferenceHead, planes_shape: tuple[int, ...], any_size: bool
) -> onnx.ModelProto:
    """Returns a network as an ONNX graph with its tensors under their own names.

    Args:
        head: float32 on the CPU, in evaluation mode; maps planes ``[B, C, H, W]`` to
            policy ``[B, A]``, value ``[B]`` and, if it answers it, score ``[B, 2]``.
        planes_shape: ``(C, H, W)`` of the game, or ``(C,)`` for a vector network.
        any_size: Whether H and W stay free; the batch always does.

    Returns:
        A graph with input ``planes``, outputs ``policy``, ``value`` and perhaps
        ``score``.

    Raises:
        RunError: The network cannot be traced, or has an operation without a rule.
    """
    # A batch of one would be taken for a constant.
    example = torch.zeros(2, *planes_shape)
    axes = {0: Dim("B")}
    if any_size:
        axes |= {2: Dim("H"), 3: Dim("W")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(head, (example,), dynamic_shapes=(axes,))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise RunError(
            f"network ({type(head).__name__}) cannot be traced: {reason}; keep its "
            f"shapes free or set inference.backend=torch"
        ) from error
    state = head.net.state_dict()
    return _Translation(program, state).model(planes_shape, any_size)


class _Translation:
    """Walks a traced program node by node."""

    def __init__(self, program: ExportedProgram, state: dict[str, Tensor]) -> None:
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
            self._bind(node, Value("planes"))
        elif target not in state:
            raise RunError(
                f"network tensor ({target}) is not in its state; make "
                f"it a parameter or a persistent buffer"
            )
        elif node.users:
            tensor = state[target].detach().numpy()
            self._initializers.append(onnx.numpy_helper.from_array(tensor, target))
            self._bind(node, Value(target))

    def _add_operation(self, node: Node) -> None:
        rule = RULES.get(str(node.target))
        if rule is None:
            raise RunError(
                f"operation ({node.target}) has no ONNX rule; add one to "
                f"tengen.models.onnx_rules or set inference.backend=torch"
            )
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self._value)
        try:
            value = rule(self._graph, *args, **kwargs)
        except TypeError as error:
            raise RunError(
                f"operation ({node.target}) has arguments without an ONNX rule: "
                f"{error}; write it in its plain form"
            ) from error
        self._bind(node, Value(value))

    def _value(self, node: Node) -> Any:
        return self._values[node]

    def _bind(self, node: Node, value: Value) -> None:
        value.num_axes = node.meta["val"].ndim
        self._values[node] = value

    def model(self, planes_shape: tuple[int, ...], any_size: bool) -> onnx.ModelProto:
        """Returns the finished graph."""
        if len(self._outputs) not in (2, 3):
            raise RunError(
                f"network outputs ({len(self._outputs)}) must be policy, value and "
                f"perhaps score; export an InferenceHead"
            )
        outputs = _OUTPUTS[: len(self._outputs)]
        for (name, _), value in zip(outputs, self._outputs, strict=True):
            node = onnx.helper.make_node("Identity", [value], [name])
            self._graph.nodes.append(node)
        size = ["H", "W"] if any_size else planes_shape[1:]
        describe = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            self._graph.nodes,
            "tengen",
            [describe("planes", onnx.TensorProto.FLOAT, ["B", planes_shape[0], *size])],
            [describe(name, onnx.TensorProto.FLOAT, axes) for name, axes in outputs],
            self._initializers,
        )
        opset = onnx.helper.make_opsetid("", OPSET)
        return onnx.helper.make_model(
            graph, opset_imports=[opset], ir_version=8, producer_name="tengen"
        )
