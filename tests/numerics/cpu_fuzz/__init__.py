"""Random block programs through the CPU engine, compared with a NumPy evaluator that shares nothing with it."""
