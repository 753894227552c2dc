"""Text that comes from a file, a backend or a user, put into a language of ours: one function for each language.

Every writer calls these functions and nothing else: the terminal, ``summary.md`` and ``index.md``, ``junit.xml``, the
HTML page, shell lines, names of folders, Parquet.  Python needs none: ``repro.py`` gets its values as literals
(``harness.evidence.repro_script``).
"""

from __future__ import annotations

import hashlib
import html as _html
import os
import re
import shlex
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr


def visible(text: object, keep: str = "") -> str:
    r"""The text with each character that has no glyph as its Python escape: controls, bidi overrides, lone surrogates.

    ESC becomes the four characters ``\x1b``.  keep: characters that stay as they are, such as a newline."""
    s = str(text)
    if s.isprintable():
        return s
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in s)


def one_line(text: object) -> str:
    """The text on one line: each run of white space becomes a blank, then as ``visible``."""
    return visible(" ".join(str(text).split()))


def utf8(text: object) -> str:
    r"""Text that UTF-8 can hold: a lone surrogate becomes its escape, such as ``\udcff``; the rest stays."""
    return str(text).encode("utf-8", "backslashreplace").decode()


# What begins an emphasis, code, a link, a tag, an entity, a cell, a mention, mathematics or an emoji; an underscore
# between two letters begins nothing.
_MARKDOWN = re.compile(r"[\\`*\[\]<>&|~$@]|(?<![^\W_])_|_(?![^\W_])|:(?=[\w+-]+:)")
_BLOCK = re.compile(r"[-+=#]|\d+(?=[.)])")  # what begins a heading, a rule or a list at the start of a line


def markdown(text: object) -> str:
    """Words of a line or a table's cell in CommonMark and GitHub's dialect, shown as they are."""
    s = _MARKDOWN.sub(r"\\\g<0>", one_line(text))
    start = _BLOCK.match(s)
    if start is None:
        return s
    return f"{start[0]}\\{s[start.end() :]}" if start[0].isdigit() else f"\\{s}"


def markdown_code(text: object, cell: bool = False) -> str:
    """A code span in Markdown.  cell: it stands in a table, where a bar needs an escape even in code."""
    s = visible(text)
    if not s.strip():
        return ""
    ticks = "`" * (1 + max((len(t) for t in re.findall("`+", s)), default=0))
    pad = " " if s[0] in "` " or s[-1] in "` " else ""
    return f"{ticks}{pad}{s.replace('|', chr(92) + '|') if cell else s}{pad}{ticks}"


def xml(text: object) -> str:
    """The content of an XML element.  What XML forbids is among what ``visible`` replaces."""
    return escape(visible(text, keep="\n\t"))


def xml_attribute(text: object) -> str:
    """The value of an XML attribute, with its quotes."""
    return quoteattr(visible(text, keep="\n\t"))


def html(text: object) -> str:
    """The content of an HTML element or a quoted attribute."""
    return _html.escape(visible(text, keep="\n\t"))


def shell(word: str) -> str:
    r"""One word of a command line.  Where a character has no glyph the word is in ``$'...'``, which bash, zsh and
    POSIX.1-2024 read, so that the line can be printed and pasted."""
    if word.isprintable():
        return shlex.quote(word)
    try:
        raw = os.fsencode(word)
    except UnicodeEncodeError:  # a surrogate that stands for no byte of a file name
        raw = word.encode("utf-8", "surrogatepass")
    plain = (chr(b) if 32 <= b < 127 and b not in b"'\\" else f"\\x{b:02x}" for b in raw)
    return f"$'{''.join(plain)}'"


def shell_line(words: Iterable[str]) -> str:
    """A command line of these words."""
    return " ".join(map(shell, words))


def file_name(text: str) -> str:
    """A name of a file or folder that every file system and artifact store takes: ASCII letters, digits, ``._+-``.

    Other characters become ``_``; the name then ends in a hash of the text, so that two texts never share a name."""
    safe = re.sub(r"[^A-Za-z0-9._+-]", "_", text).lstrip(".-").rstrip(".")
    if safe == text and 0 < len(safe) <= 160:
        return safe
    return f"{safe[:150]}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}".lstrip("-")
