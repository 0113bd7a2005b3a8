"""A headless Chromium under control: pages opened at a width, measured, clicked, and watched for requests."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
# The browser reads commands from descriptor 3 and writes to 4.
_ON_3_AND_4 = 'exec "$@" 3<&"$IN" 4>&"$OUT"'


class Browser:
    """One tab of a browser; `events` are all that it reported."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer, self._sent, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give a command of the DevTools protocol, and wait for its answer."""
        self._sent += 1
        command: dict[str, Any] = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (found := self._next()).get("id") != self._sent:
            self.events.append(found)
        assert "error" not in found, found["error"]
        return found["result"]

    def open(self, url: str, width: int) -> None:
        """Show a page at a width in points; what was reported of an earlier one is forgotten."""
        self.events.clear()
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        self.send("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def wait(self, method: str) -> None:
        """Wait until the browser has reported something of a kind since the page was opened."""
        while not self.reported(method):
            self.events.append(self._next())

    def until(self, condition: str) -> None:
        """Wait until a JavaScript expression is true in the page; a test's own limit ends it."""
        self.run(
            "new Promise((done) => { const look = () => "
            f"({condition}) ? done() : setTimeout(look, 20); look(); }})"
        )

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        done = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def click(self, selector: str) -> None:
        """Click the first element of a selector, as a hand would."""
        x, y = self.run(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)});"
            "element.scrollIntoView({block: 'center'}); const box = element.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def photograph(self, path: Path, height: float, scale: float = 1.0) -> None:
        """Write a picture of the top of the page."""
        width = self.run("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        taken = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def reported(self, method: str) -> list[dict[str, Any]]:
        """What the browser reported of one kind since the page was opened."""
        return [event["params"] for event in self.events if event["method"] == method]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, which reaches this machine and no other."""
    assert CHROMIUM is not None
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()
    arguments = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={profile}",
        "--remote-debugging-pipe",
    ]
    process = subprocess.Popen(
        ["bash", "-c", _ON_3_AND_4, "bash", *arguments],
        env=os.environ | {"IN": str(to_browser), "OUT": str(from_browser)},
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        process.terminate()
        process.wait(timeout=30)
