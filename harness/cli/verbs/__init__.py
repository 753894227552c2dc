"""One module a verb: ``HELP``, ``arguments(parser)`` and ``run(args)``, which returns the exit code."""
