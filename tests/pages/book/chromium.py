"""A Chromium without a window for tests of pages, driven through its DevTools protocol.

https://chromedevtools.github.io/devtools-protocol/ (read in November 2026)
"""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import websocket  # comes with JupyterLab

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page. Use it in a `with` statement; the browser ends with it.

    requests: every address that was requested since the page was opened, without data: addresses
    errors: exceptions of the page's scripts
    """

    def __init__(self, folder: Path):
        assert PROGRAM
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        options = ["--headless", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--remote-allow-origins=*"]
        self.process = subprocess.Popen(
            [PROGRAM, *options, *sandbox, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.number = 0
        port_file = folder / "DevToolsActivePort"
        deadline = time.monotonic() + 60
        while not (port_file.exists() and len(port_file.read_text().split()) == 2):
            assert time.monotonic() < deadline and self.process.poll() is None, f"{PROGRAM} did not start"
            time.sleep(0.1)
        port, path = port_file.read_text().split()
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=120)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=30)

    def call(self, method: str, **parameters) -> dict:
        """The result of a method of the protocol. Raises RuntimeError with the browser's message."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        self.socket.send(json.dumps(message | ({"sessionId": self.session} if self.session else {})))
        while (answer := self._next()).get("id") != self.number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _next(self) -> dict:
        event = json.loads(self.socket.recv())
        if event.get("method") == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            self.requests += [url] if not url.startswith("data:") else []
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(event["params"]["exceptionDetails"]["text"])
        return event

    def open(self, path: Path, *, width: int = 1280, theme: str = "light", query: str = "") -> None:
        """Opens a file at a window width, in pixels, for a reader who prefers a theme; returns when it is loaded."""
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.requests, self.errors = [], []
        self.call("Page.navigate", url=path.as_uri() + query)
        self.wait("document.readyState == 'complete'")

    def run(self, script: str):
        """The value of an expression in the page; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script: str, seconds: float = 30) -> None:
        """Returns when an expression is true. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > deadline:
                raise TimeoutError(script)
            time.sleep(0.1)
