"""If in other operators: the branch that a constant condition takes, else both branches and a choice of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import helper

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of, first_names, inner_graphs, node_name
from harness.compile.models.preparation.constants import fold
from harness.compile.models.preparation.editing import NodeWriter, rewrite
from harness.compile.models.preparation.identities import remove_identities

WORDS = ("then", "else")
_CHOICE = "chooses the branch of "
"""How the description of a `Where` or an If begins that chooses between results of both branches; a name follows."""


def take_constant_branches(model: Any) -> str:
    """Put the branch that is taken in the place of each If whose condition is a constant."""
    count, names = 0, list[str]()
    while taken := take_branches(model):
        names += taken
        remove_identities(model)
        count += fold(model)
    if not names:
        return ""
    text = f"kept one branch of {len(names)} If whose condition is constant: {first_names(names)}"
    return f"{text}; folded {counted(count, 'operator')} in them" if count else text


def take_branches(model: Any) -> list[str]:
    """Put the branch that is taken in the place of each If that a constant decides.

    Returns their names, as `then of NAME`. An If inside such a branch stays.
    """
    taken = list[str]()

    def take(node: Any, view: NetworkView, write: NodeWriter) -> bool:
        condition = view.constant(node, 0)
        if condition is None:
            return False
        word = "then" if condition.any() else "else"
        taken.append(f"{word} of {node_name(node)}")
        for name, output in zip(_move(node, word, write), node.output, strict=True):
            if output:
                write.add("Identity", name, output=output)
        return True

    rewrite(model, "branch", take, "If")
    return taken


def lift_branches(model: Any) -> str:
    """Put the operators of both branches of each If that an input decides into the network around it.

    A `Where` chooses between results of a known shape, an If of `Identity` between others. TVM's importer computes all
    but the last operator of both branches as well, outside of its If, around which it fuses nothing.
    """
    names = list[str]()
    # An If inside a branch is lifted next.
    while lifted := [*rewrite(model, "lifted", _lift, "If"), *_read_both(model)]:
        names += [node_name(node) for node in lifted if node.op_type == "If" and not chosen_if(node)]
        remove_identities(model)
        fold(model)
        take_constant_branches(model)
    if not names:
        return ""
    text = f"computed both branches of {len(names)} If, of which one branch is judged: {first_names(names)}"
    return f"{text} (--fix INPUT=NUMBER chooses for good)"


def _lift(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    if chosen_if(node) and view.shape(node.output[0]) is None:
        return False
    mark, condition = _CHOICE + (chosen_if(node) or node_name(node)), node.input[0]
    thens, elses = (_move(node, word, write) for word in WORDS)
    if view.shape(condition) != ():  # one element, which would give its axis to a number
        condition = write.add("Reshape", condition, write.integers())
    for output, then, otherwise in zip(node.output, thens, elses, strict=True):
        if output and view.shape(output) is None:
            _write_choice(condition, (then, otherwise), output, mark, write)
        elif output:
            write.add("Where", condition, then, otherwise, output=output, doc_string=mark)
    return True


def _write_choice(condition: str, names: Sequence[str], output: str, mark: str, write: NodeWriter) -> None:
    """Write an If whose branches take what they give from the network around it."""
    nodes = [helper.make_node("Identity", [name], [write.name()]) for name in names]
    ends = [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes]
    graphs = [helper.make_graph([node], "end", [], [end]) for node, end in zip(nodes, ends, strict=True)]
    write.add("If", condition, output=output, doc_string=mark, then_branch=graphs[0], else_branch=graphs[1])


def _read_both(model: Any) -> list[Any]:
    """Compute for both branches what reads a choice of sequences or of several shapes, and choose between the results.

    TVM's importer cannot index a choice, and its compiler builds no operator of a shape that depends on one.
    """
    choices = {node.output[0]: node for node in model.graph.node if node.op_type == "If" and chosen_if(node)}

    def choose(node: Any, view: NetworkView, write: NodeWriter) -> bool:
        chosen = {name: choices[name] for name in node.input if name in choices}
        if not chosen or inner_graphs(node):
            return False
        choice = next(iter(chosen.values()))
        alike = {name: each for name, each in chosen.items() if each.input[0] == choice.input[0]}
        new_names = []
        for branch in (f"{word}_branch" for word in WORDS):
            ends = {name: attribute_of(each, branch, None).node[0].input[0] for name, each in alike.items()}
            new_names.append(write.copy([node], ends))
        for output in filter(None, node.output):
            _write_choice(choice.input[0], [names[output] for names in new_names], output, choice.doc_string, write)
            if view.shape(output) is None:
                choices[output] = write.nodes[-1]
        return True

    return rewrite(model, "either", choose)


def chosen_if(node: Any) -> str:
    """Return the name of the If between whose results a node chooses; empty for any other node."""
    return str(node.doc_string).removeprefix(_CHOICE) if node.doc_string.startswith(_CHOICE) else ""


def _move(node: Any, word: str, write: NodeWriter) -> list[str]:
    """Write an If's branch into the network around it, with its weights; returns the names of its results."""
    branch = attribute_of(node, f"{word}_branch", None)
    names = write.weights(branch)
    names |= write.copy(branch.node, names, f"{node_name(node)}/{word}")
    return [names.get(value.name, value.name) for value in branch.output]
