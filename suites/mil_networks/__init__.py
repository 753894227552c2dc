"""Real networks for ``run_model``: written in PyTorch, converted by coremltools, compared with PyTorch layer by layer.

models.py    the networks, every step a module of its own, so that each can be watched
convert.py   module -> package and program, and under which name each layer's result stands in the program
compare.py   PyTorch in f64 against ``run_model``: the first layer that leaves its bound

Needs the extra ``networks`` (PyTorch for the CPU).
"""
