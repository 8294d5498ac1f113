"""Densities without the terms that depend on data alone; every density has this form."""

import varmat as vm
from varmat.densities.cumulative.row import LogCumulative
from varmat.densities.density import Density


def test_every_density_has_an_unnormalised_one_under_stans_name():
    rows = [each for name in vm.__all__ if isinstance(each := getattr(vm, name), Density)]
    densities = [each for each in rows if not isinstance(each, LogCumulative)]
    assert len(densities) > 30
    for each in densities:
        assert getattr(vm, each.name.replace("_lp", "_lup")) is each.proportional
