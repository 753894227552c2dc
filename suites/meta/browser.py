"""A real browser for tests: Chromium, headless, driven over its DevTools pipe.  Needs nothing but the browser
itself.

The pipe is a pair of file descriptors (3 in, 4 out) with JSON messages that end in a zero byte.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str | None:
    """Path of a browser: ``OPCONFORM_CHROMIUM`` or the first one on the path; None without one."""
    given = os.environ.get("OPCONFORM_CHROMIUM")
    return given or next((p for p in map(shutil.which, NAMES) if p), None)


class Browser:
    """One page in one browser process.  Requests and console errors of the page are collected."""

    def __init__(self, path: str, width: int = 1440, height: int = 900) -> None:
        self._profile = tempfile.mkdtemp(prefix="opconform-browser-")
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        args = [
            path,
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-gpu",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-extensions",
            f"--user-data-dir={self._profile}",
            f"--window-size={width},{height}",
            "about:blank",
        ]

        def pipes() -> None:
            os.dup2(to_read, 103)  # first out of the way, so that neither end is overwritten
            os.dup2(from_write, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self._process = subprocess.Popen(
            args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=pipes,
        )
        os.close(to_read)
        os.close(from_write)
        self._in, self._out = to_write, from_read
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.blocked: list[str] = []  # why requests that failed did
        self.errors: list[str] = []
        self.dialogs: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One DevTools command; returns its result, raises RuntimeError with the browser's message."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            got = self._receive(60.0)
            if got is None:
                raise RuntimeError(f"{method}: no answer from the browser")
            if got.get("id") == self._number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']['message']}")
                return got["result"]

    def _receive(self, timeout: float) -> dict[str, Any] | None:
        end = time.monotonic() + timeout
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._out, 1 << 20) if ready else b""
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        got: dict[str, Any] = json.loads(line)
        self._event(got)
        return got

    def _event(self, got: dict[str, Any]) -> None:
        method, params = got.get("method"), got.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Network.loadingFailed":
            self.blocked.append(params.get("blockedReason", ""))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])

    def open(self, url: str | Path) -> None:
        """Load a page and wait for its load event."""
        if isinstance(url, Path):
            url = url.resolve().as_uri()
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def js(self, expression: str) -> Any:
        """Value of a JavaScript expression (awaited); raises RuntimeError when it throws."""
        got = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"].get("exception", {}).get("description", "JavaScript error"))
        return got["result"].get("value")

    def wait(self, expression: str, seconds: float = 20.0) -> None:
        """Wait until an expression is true; raises TimeoutError naming it, at once if the page has thrown."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(RuntimeError):
                if self.js(f"Boolean({expression})"):
                    return
            if time.monotonic() > end or self.errors:
                raise TimeoutError(f"not true within {seconds:g} s: {expression}; errors: {self.errors}")
            time.sleep(0.03)

    def key(self, name: str) -> None:
        """Press and release a key as a user would ("j", "ArrowDown", "Escape", "Tab")."""
        codes = {
            "ArrowDown": 40,
            "ArrowUp": 38,
            "Escape": 27,
            "Tab": 9,
            "Enter": 13,
            "End": 35,
            "Home": 36,
            "PageDown": 34,
        }
        text = name if len(name) == 1 else "\r" if name == "Enter" else ""
        code = codes.get(name) or ord(name.upper())
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code, **extra)

    def click(self, selector: str) -> None:
        """A real mouse click in the middle of the first element that matches."""
        box = self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            " e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        if box is None:
            raise RuntimeError(f"nothing matches {selector}")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Insert text where the focus is."""
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int, scale: float = 1.0) -> None:
        """Size of the window in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def dark(self, on: bool) -> None:
        """What the system says it prefers."""
        value = "dark" if on else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def close(self) -> None:
        """End the browser and remove its profile."""
        self._session = None
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        for fd in (self._in, self._out):
            with contextlib.suppress(OSError):
                os.close(fd)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
