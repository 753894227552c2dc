"""A runtime in any language: a command that speaks the runner protocol (``docs/runner-protocol.md``)."""
