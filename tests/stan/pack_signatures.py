r"""Pack the compiler's list of signatures into `varmat/stan/signatures.txt`.

    stanc --dump-stan-math-signatures | python tests/stan/pack_signatures.py \
        > varmat/stan/signatures.txt

Functions with the same signatures share a line, and alternatives of an argument share a signature.
`varmat/stan/signatures.py` describes the notation.
"""

import re
import sys
import textwrap
from collections import defaultdict

NAMES = "int real complex vector row_vector matrix complex_vector complex_row_vector complex_matrix"
LETTERS = dict(zip(NAMES.split(), "ircvwmVWM", strict=True))
# The list does not say which arguments must not depend on parameters; Stan's manual does. Positions
# count from 0.
DATA = {
    r"algebra_solver.*": range(3, 8), r"integrate_ode.*": range(5, 10), "integrate_1d": range(4, 7),
    "map_rect": range(3, 5), "quantile": range(2), "to_int": range(1),
    "hmm_hidden_state_prob": range(3), "linspaced_.*": range(3),
}  # fmt: skip
# Functions with any number of arguments, `*`, which the list leaves out.
VARIADIC = {
    "ode_adams ode_bdf ode_ckrk ode_rk45": "<r;v;*=v>,v,r,1r,*=1v",
    "ode_adams_tol ode_bdf_tol ode_ckrk_tol ode_rk45_tol": "<r;v;*=v>,v,r,1r,dr,dr,di,*=1v",
    "ode_adjoint_tol_ctl": "<r;v;*=v>,v,r,1r,dr,dv,dr,dv,dr,dr,di,di,di,di,di,*=1v",
    "dae": "<r;v;v;*=v>,v,v,dr,d1r,*=1v",
    "dae_tol": "<r;v;v;*=v>,v,v,dr,d1r,dr,dr,di,*=1v",
    "solve_newton solve_powell": "<v;*=v>,v,*=v",
    "solve_newton_tol solve_powell_tol": "<v;*=v>,v,dr,dr,di,*=v",
    "integrate_1d_double_exponential integrate_1d_gauss_kronrod": "<r;r;*=r>,r,r,*=r",
    "integrate_1d_double_exponential_tol integrate_1d_gauss_kronrod_tol": (
        "<r;r;*=r>,r,r,dr,dr,di,*=r"
    ),
}


def split(text):
    """Split at the commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part]


def encode(text):
    """Write a type in letters."""
    if text.startswith("data "):
        return "d" + encode(text[5:])
    if array := re.match(r"array\[(,*)\] (.*)", text):
        return f"{len(array[1]) + 1}{encode(array[2])}"
    if text.startswith("tuple("):
        return f"({';'.join(map(encode, split(text[6:-1])))})"
    if text.startswith("("):
        arguments, result = text[1:].rsplit(") => ", 1)
        return f"<{';'.join(map(encode, split(arguments)))}={encode(result)}>"
    return LETTERS[text]


def merge(signatures):
    """Unite signatures that differ in one argument, as long as there are any."""
    before = None
    while before != len(signatures):
        before = len(signatures)
        for position in range(max(len(arguments) for arguments, _ in signatures)):
            groups = defaultdict(set)
            for arguments, result in signatures:
                here = arguments[position : position + 1]
                rest = (arguments[:position], arguments[position + 1 :], len(arguments), result)
                groups[rest].update(*here)
            signatures = {
                ((*first, *([frozenset(here)] if position < size else []), *last), result)
                for (first, last, size, result), here in groups.items()
            }
    return {
        ",".join("|".join(sorted(here)) for here in arguments) + "=" + result
        for arguments, result in signatures
    }


def collapse(signatures):
    """Write once a signature that recurs with arrays of more and more dimensions."""
    left, result = set(signatures), []
    for signature in sorted(signatures):
        run = [signature]
        while signature in left and (deeper := _deeper(signature, len(run))) in left - {run[-1]}:
            run.append(deeper)
        if len(run) > 1:
            left.difference_update(run)
            result.append(f"{signature}+{len(run) - 1}")
    return sorted([*left, *result])


def _deeper(signature, more):
    return re.sub(r"\d", lambda digit: str(int(digit[0]) + more), signature)


def main():
    found = defaultdict(set)
    for line in sys.stdin:
        if parts := re.fullmatch(r"\s*(\w+)\((.*)\) => (.*)\n", line):
            name, arguments, result = parts.groups()
            data = next((DATA[key] for key in DATA if re.fullmatch(key, name)), ())
            types = tuple(
                frozenset(["d" * (position in data) + encode(argument)])
                for position, argument in enumerate(split(arguments))
            )
            found[name].add((types, "-" if result == "void" else encode(result)))
    families = defaultdict(list)
    for name, signatures in found.items():
        families[" ".join(collapse(merge(signatures)))].append(name)
    lines = [f"{' '.join(sorted(names))}: {text}" for text, names in families.items()]
    lines += [f"{names}: {text}" for names, text in VARIADIC.items()]
    for line in sorted(lines):
        print(
            textwrap.fill(
                line, 120, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
            )
        )


if __name__ == "__main__":
    main()
