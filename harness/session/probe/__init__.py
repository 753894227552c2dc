"""What a backend can claim, found by experiment."""

from harness.session.probe.probe import Probe

__all__ = ["Probe"]
