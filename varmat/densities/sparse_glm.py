"""Generalised linear models with a sparse matrix of independent variables, which is data.

The matrix stays in SciPy's format. It is multiplied with the weight vector, and its transpose with
the derivatives with respect to the linear predictors."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.domains import Domain
from varmat.core.operation import Operation, is_differentiable
from varmat.functions.sparse.products import checked_matrix
from varmat.functions.sparse.variable import as_sparse
from varmat.typing import Adjoint, Function, Operand, Propto, Result

if TYPE_CHECKING:
    from varmat.densities.density import KeptTerms
    from varmat.densities.glm import Glm


class SparseGlm(Operation):
    """The operation behind a model with a sparse matrix. The matrix is a setting, not an operand.

    Attributes
    ----------
    model : Glm
        The density.
    """

    def __init__(self, model: Glm, value: Operand, early: Operand) -> None:
        def function(
            *values: Operand,
            matrix: Operand,
            keep: KeptTerms | None = None,
            workspace: Function = np.empty,
        ) -> Result:
            return value(values[0], matrix, *values[1:], keep=keep, workspace=workspace)

        update_wrapper(function, value)
        settings = {"matrix": None, "keep": None, "workspace": np.empty}
        kind = inspect.Parameter.KEYWORD_ONLY
        function.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
            *(p for p in model.parameters if p.name != "X"),
            *(inspect.Parameter(name, kind, default=default) for name, default in settings.items()),
        ])  # fmt: skip
        super().__init__(function, early, False, False, False)
        self.model = model
        self.reverse(self._reverse_of_model)
        self.tangent(self._tangent_of_model)

    def _reverse_of_model(
        self,
        g: Adjoint,
        r: Operand,
        y: Operand,
        *values: Operand,
        matrix: Operand,
        keep: KeptTerms | None,
        sums: Operand,
    ) -> Result:
        of_y, _, *others = self.model.operation.reverse_rule(
            g, r, y, matrix, *values, keep=keep, sums=sums
        )
        return of_y, *others

    def _tangent_of_model(
        self, r: Operand, y: Operand, *values: Operand, matrix: Operand, keep: KeptTerms | None
    ) -> Result:
        of_y, _, *others = self.model.operation.push(
            r, (y, as_sparse(matrix), *values), {"keep": keep}
        )
        return of_y, *others


def call_with_sparse(model: Glm, args: Sequence[Operand], propto: Propto, named: Operand) -> Result:
    """Call a model whose second argument is sparse."""
    y, x, *others = model.__signature__.bind(*args, **named).args
    x = checked_matrix(model.name, "X", x)
    # SciPy converts other formats to one of these at every product.
    x = (x if x.format in ("csr", "csc", "coo") else x.tocsr()).astype(FLOAT64, copy=False)
    if x.shape[0] == 1:  # one row for all observations
        return model(y, x.toarray(), *others, propto=propto)
    values = dict(zip((name for name in model.arguments if name != "X"), (y, *others), strict=True))
    for name in model.discrete:
        if is_differentiable(values[name]):
            model.refuse_variable(name)
    keep = model.kept_terms(values.items(), propto)
    return model.with_sparse(*values.values(), matrix=x, keep=keep)


def check_elements(function: str, title: str, domain: Domain, matrix: Operand) -> None:
    """Raise an error, with its place, for a non-zero element outside a domain."""
    places = matrix.tocoo()
    for i in np.flatnonzero(~domain.holds(places.data)):
        domain.check(function, f"{title}[{places.row[i]}, {places.col[i]}]", float(places.data[i]))
