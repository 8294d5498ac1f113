"""Stan programs: grammar, checks, evaluator."""
