"""The graph of a model: which values depend on which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from varmat.models.functions import Named
from varmat.models.stated import StatedModel

_SHAPES = {
    "parameter": "ellipse",
    "discrete": "diamond",
    "value": "box",
    "observed": "ellipse, style=filled",
}


@dataclass(frozen=True, repr=False)
class ModelGraph:
    """What each value of a model depends on, as made by `Model.graph`.

    Attributes
    ----------
    kinds : dict of str to str
        The name of each value -> "parameter", "value" or "observed".
    parents : dict of str to tuple of str
        The name of each value -> the parameters and values on which it depends.
    """

    kinds: dict[str, str]
    parents: dict[str, tuple[str, ...]]

    def __repr__(self) -> str:
        width = max(map(len, self.kinds), default=0)
        return "\n".join(
            f"{name:{width}} {kind:9} {', '.join(self.parents[name])}".rstrip()
            for name, kind in self.kinds.items()
        )

    @property
    def dot(self) -> str:
        """The graph in the language of Graphviz."""
        nodes = [f'  "{name}" [shape={_SHAPES[kind]}];' for name, kind in self.kinds.items()]
        edges = [
            f'  "{parent}" -> "{name}";' for name in self.kinds for parent in self.parents[name]
        ]
        return "\n".join(["digraph {", *nodes, *edges, "}"])


def graph_of(spec: StatedModel, derived: Mapping[str, Named]) -> ModelGraph:
    """Make the graph of `Model.graph`, with the functions of transformed parameters."""
    varying = {name: f for x in spec.summed for name, f in x.derived.items()}
    derived = {**derived, **varying}
    kinds = dict.fromkeys(spec.parameters, "parameter")
    kinds |= dict.fromkeys(spec.discrete, "discrete")
    kinds |= dict.fromkeys(derived, "value") | dict.fromkeys(spec.parts, "observed")
    names: dict[str, tuple[str, ...]] = dict.fromkeys(spec.discrete, ())
    names |= {name: prior.names for name, prior in spec.priors.items()}
    for name, transform in spec.parameters.items():  # bounds may depend on others too
        functions = getattr(transform, "functions", ())
        names[name] = (*names.get(name, ()), *(n for f in functions for n in f.needed))
    names |= {name: function.names for name, function in derived.items()}
    for name, part in spec.parts.items():
        names[name] = (*names.get(name, ()), *part.stated.names)
    parents = {
        name: tuple(n for n in dict.fromkeys(x) if n in kinds and n != name)
        for name, x in names.items()
    }
    return ModelGraph(kinds, parents)
