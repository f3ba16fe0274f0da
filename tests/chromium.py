"""A headless Chromium, driven through a pipe by the DevTools protocol: what a page logs, asks for and shows."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """The browser; on Debian it is installed where there is none and we may. None if it cannot be had."""
    found = _installed()
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(
                ["apt-get", "-q", *arguments], env=environment, capture_output=True, check=False, timeout=600
            )
        found = _installed()
    return found


def _installed() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One tab. `events` holds what the browser reported, as (method, parameters)."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._ids = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.events: list[tuple[str, dict[str, Any]]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(60)
            if answer is None:
                raise TimeoutError(method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Security"):
            self.call(f"{domain}.enable")

    def look(self, *, width: int, height: int = 900, dark: bool = False, motion: bool = True) -> None:
        """How the next pages are shown."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "no-preference" if motion else "reduce"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Load a page, and wait until it is quiet."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")
        self.settle()

    def settle(self, seconds: float = 0.4) -> None:
        """Let pending work of the page run, and gather its events."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._receive(left)

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = True, **clip: float) -> None:
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole}
        if clip:
            options["clip"] = {"x": 0, "y": 0, "scale": 1, **clip}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def _wait_for(self, method: str) -> None:
        end = time.monotonic() + 60
        while all(name != method for name, _ in self.events):
            if time.monotonic() > end:
                raise TimeoutError(method)
            self._receive(1)

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        """The next message, None if there is none in that time."""
        while b"\0" not in self._rest:
            if not select.select([self._answers], [], [], max(seconds, 0))[0]:
                return None
            block = os.read(self._answers, 1 << 20)
            if not block:
                raise EOFError("chromium has ended")
            self._rest += block
        text, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.events.append((message["method"], message.get("params", {})))
        return message


@contextmanager
def chromium(program: str, profile: Path) -> Iterator[Chromium]:
    """Start the browser; it reads commands from its file descriptor 3 and answers on 4."""
    reads, commands = os.pipe()
    answers, writes = os.pipe()
    # Numbers far from 3 and 4, which the shell gives to the browser.
    theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (reads, writes)]
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    flags += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
    flags += [f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
    browser = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash", program, *flags],
        pass_fds=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for fd in (reads, writes, *theirs):
        os.close(fd)
    try:
        tab = Chromium(commands, answers)
        tab.attach()
        yield tab
    finally:
        os.close(commands)
        os.close(answers)
        try:
            browser.wait(timeout=10)
        except subprocess.TimeoutExpired:
            browser.kill()
            browser.wait()
