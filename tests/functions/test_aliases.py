"""Aliases: what their errors say."""

from __future__ import annotations

import pickle
import re

import pytest

import varmat as vm
from varmat.functions.aliases import alias


@pytest.mark.parametrize(("text", "expected"), [
    ("halved: x is 1; the signature is halved(x)", "half: x is 1; the signature is half(x)"),
    ("halves: x is 1", "halves: x is 1"),
])  # fmt: skip
def test_an_alias_renames_what_its_function_says_of_itself(text, expected):
    error = vm.DomainError(text)

    def halved(x):
        raise error

    half = alias("half", halved)
    assert half.alias_of is halved
    with pytest.raises(vm.DomainError, match=f"^{re.escape(expected)}$") as raised:
        half(1)
    assert raised.value is error


def test_an_alias_has_its_own_name():
    assert (vm.lgamma.__name__, vm.gammaln.__name__) == ("lgamma", "gammaln")
    assert pickle.loads(pickle.dumps(vm.lgamma)) is vm.lgamma
