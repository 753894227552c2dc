"""Python callables judged as kernels of one op: ``opconform.check`` and ``opconform.conforms``."""
