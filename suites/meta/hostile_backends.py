"""Backends whose words are chosen to break what is written with them: quotes, code, tags, controls, lone surrogates."""

from suites.meta.toy_backends import Right

WORDS = (
    'x."""\nimport pathlib; pathlib.Path("PWNED").touch()\n"""\n# forged\n| a | b |\x1b]0;t\x07\x00\u202e'
    "<script>alert(1)</script>`${x}`]]>'\"\\&amp;\udcff ::error::no"
)


class Refuses(Right):
    def version(self):
        return WORDS

    def load(self, model, format):
        raise RuntimeError(WORDS)


class Wrong(Right):
    def version(self):
        return WORDS

    def run(self, handle, inputs):
        return {
            name: value + 1 if value.dtype.kind == "f" else value for name, value in super().run(handle, inputs).items()
        }
