"""Execution providers of ONNX Runtime, each a backend of its own (``docs/providers.md``).

``table`` lists them and runs in the host; ``adapter`` runs in the worker process.
"""
