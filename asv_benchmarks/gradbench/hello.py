"""The square of a number, and its derivative."""

from gradbench import wrap

import varmat as vm


@wrap.function(pre=float, post=float)
def square(x):
    return x * x


@wrap.function(pre=float, post=float)
def double(x):
    return vm.grad(square)(x)
