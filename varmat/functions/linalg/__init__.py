"""Linear algebra: products, systems, factorisations, functions of matrices."""
