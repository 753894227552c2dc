"""RegexFullMatch takes the syntax of RE2 (https://github.com/google/re2/wiki/Syntax), not that of Python's ``re``."""

import re

import numpy as np
import pytest

from harness.core.errors import RuleError
from suites.onnx.ops import text
from suites.semantics.text import full_match


@pytest.mark.parametrize(
    ("pattern", "string", "matches"),
    [
        (r"\w+", "aé", False),  # [0-9A-Za-z_]
        (r"\d", "٣", False),  # [0-9]
        (r"\pL+", "aé", True),
        ("[[:alpha:]]+", "abc", True),
        (r"\Qa.b\E", "a.b", True),
        (r"a\z", "a", True),
        (r"\s", "\v", False),  # [\t\n\f\r ]
        (".", "é", True),  # one character of several bytes
        (".", "\n", False),
        ("(?s).", "\n", True),
        ("a|ab", "ab", True),  # the whole string, although the first branch ends earlier
    ],
)
def test_a_pattern_means_what_the_page_of_re2_states(pattern: str, string: str, matches: bool) -> None:
    x = np.array([[string, ""]], object)
    assert full_match(x, pattern).tolist() == [[matches, False]]


@pytest.mark.parametrize("pattern", text._NO_PATTERNS)
def test_a_pattern_that_re2_refuses_breaks_a_rule(pattern: str) -> None:
    with pytest.raises(RuleError, match="re2-syntax: expected a pattern in RE2 syntax, got"):
        full_match(np.array(["a"], object), pattern)


def test_patterns_that_python_takes_are_among_the_invalid_ones() -> None:
    assert sum(1 for p in text._NO_PATTERNS if _python_takes(p)) >= 9


def _python_takes(pattern: str) -> bool:
    try:
        return re.compile(pattern) is not None
    except re.error:
        return False
