"""Whole graphs, layer by layer: a backend against the reference, with the first layer that leaves its bound named.

``python -m suites.onnx_models --help`` lists what it can do; ``real_graphs.toml`` names the graphs, none of which is
kept here: they come inside packages of others.
"""
