"""Stan's constants and makers of containers, which NumPy has under other names.

Indices are counted from 0, as everywhere in varmat.
"""

from __future__ import annotations

from varmat.functions.arrays.constant_arrays import e as e
from varmat.functions.arrays.constant_arrays import identity_matrix as identity_matrix
from varmat.functions.arrays.constant_arrays import machine_precision as machine_precision
from varmat.functions.arrays.constant_arrays import negative_infinity as negative_infinity
from varmat.functions.arrays.constant_arrays import not_a_number as not_a_number
from varmat.functions.arrays.constant_arrays import one_hot_array as one_hot_array
from varmat.functions.arrays.constant_arrays import one_hot_int_array as one_hot_int_array
from varmat.functions.arrays.constant_arrays import one_hot_row_vector as one_hot_row_vector
from varmat.functions.arrays.constant_arrays import one_hot_vector as one_hot_vector
from varmat.functions.arrays.constant_arrays import ones_array as ones_array
from varmat.functions.arrays.constant_arrays import ones_int_array as ones_int_array
from varmat.functions.arrays.constant_arrays import ones_row_vector as ones_row_vector
from varmat.functions.arrays.constant_arrays import ones_vector as ones_vector
from varmat.functions.arrays.constant_arrays import pi as pi
from varmat.functions.arrays.constant_arrays import positive_infinity as positive_infinity
from varmat.functions.arrays.constant_arrays import sqrt2 as sqrt2
from varmat.functions.arrays.constant_arrays import uniform_simplex as uniform_simplex
from varmat.functions.arrays.constant_arrays import unitspaced_array as unitspaced_array
from varmat.functions.arrays.constant_arrays import zeros_array as zeros_array
from varmat.functions.arrays.constant_arrays import zeros_int_array as zeros_int_array
from varmat.functions.arrays.constant_arrays import zeros_row_vector as zeros_row_vector
from varmat.functions.arrays.constant_arrays import zeros_vector as zeros_vector
from varmat.functions.arrays.containers import linspaced_array as linspaced_array
from varmat.functions.arrays.containers import linspaced_row_vector as linspaced_row_vector
from varmat.functions.arrays.containers import linspaced_vector as linspaced_vector
from varmat.functions.arrays.containers import rep_row_vector as rep_row_vector
from varmat.functions.arrays.repeating import rep_array as rep_array
from varmat.functions.arrays.repeating import rep_matrix as rep_matrix
from varmat.functions.arrays.repeating import rep_vector as rep_vector

__all__ = [
    "e",
    "identity_matrix",
    "linspaced_array",
    "linspaced_row_vector",
    "linspaced_vector",
    "machine_precision",
    "negative_infinity",
    "not_a_number",
    "one_hot_array",
    "one_hot_int_array",
    "one_hot_row_vector",
    "one_hot_vector",
    "ones_array",
    "ones_int_array",
    "ones_row_vector",
    "ones_vector",
    "pi",
    "positive_infinity",
    "rep_array",
    "rep_matrix",
    "rep_row_vector",
    "rep_vector",
    "sqrt2",
    "uniform_simplex",
    "unitspaced_array",
    "zeros_array",
    "zeros_int_array",
    "zeros_row_vector",
    "zeros_vector",
]
