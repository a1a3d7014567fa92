"""A headless Chromium, driven through its own WebDriver server by the standard library alone. And a
headless Firefox, which is only looked at drawings with, by its own protocol (Marionette).

    with Browser(directory) as browser:
        browser.open("http://127.0.0.1:8080/")
        browser.wait("return document.title === 'MBCAS'")
"""
import base64
import http.client
import json
import pathlib
import re
import shutil
import socket
import subprocess
import time

PATIENCE_S = 120  # for anything that happens by itself, on a machine that others keep busy
PROGRAMS = ("chromedriver", "chromium")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name that WebDriver gives to references
KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "tab": "\ue004",
        "enter": "\ue007"}


def missing():
    """The programs that are not here."""
    return [name for name in PROGRAMS if not shutil.which(name)]


class WebDriverError(Exception):
    pass


class Browser:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.downloads = self.directory / "downloads"
        self.downloads.mkdir()
        self.log = (self.directory / "chromedriver.log").open("w")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=self.log, text=True)
        self.session = None
        try:
            self.port = self._port()
            self.session = self._start()
            self.cdp("Browser.setDownloadBehavior", behavior="allow",
                     downloadPath=str(self.downloads))
        except BaseException:
            self.close()
            raise

    def _port(self):
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return int(found[1])
        raise WebDriverError("chromedriver did not start")

    def _start(self):
        profile = self.directory / "profile"
        profile.mkdir()
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                     "--no-first-run", "--disable-background-networking",
                     "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
                     "--hide-scrollbars", "--no-proxy-server", f"--user-data-dir={profile}"]
        wanted = {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"}, "timeouts": {"script": PATIENCE_S * 1000}}}
        answer = self._request("POST", "/session", {"capabilities": wanted})
        return answer["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            if self.session:
                self._request("DELETE", f"/session/{self.session}")
        except (OSError, http.client.HTTPException, WebDriverError):
            pass
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.log.close()

    def _request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S * 2)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise WebDriverError(f"{value['error']}: {value.get('message', '')[:2000]}")
        return value

    def command(self, method, path, body=None):
        return self._request(method, f"/session/{self.session}{path}", body)

    def cdp(self, name, **parameters):
        return self.command("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    # --- what a user does ---

    def open(self, address):
        # From another page, so that one with the same path and another fragment is loaded, too.
        self.command("POST", "/url", {"url": "about:blank"})
        self.command("POST", "/url", {"url": address})

    def leave(self):
        """What it shows; its complaints are forgotten."""
        self.command("POST", "/url", {"url": "about:blank"})
        self.complaints()

    def screen(self, width, height, dark=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def find(self, selector):
        found = self.command("POST", "/element", {"using": "css selector", "value": selector})
        return found[ELEMENT]

    def click(self, selector):
        # The bar at the bottom may cover what is only just on the screen.
        self.run(
            "document.querySelector(arguments[0])?.scrollIntoView({block: 'center'})", selector)
        self.command("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, *keys):
        text = "".join(KEYS.get(key, key) for key in keys)
        self.command("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.command("GET", "/screenshot")))

    # --- what a user sees ---

    def run(self, script, *arguments):
        return self.command("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def wait(self, condition, *arguments, what=None):
        """Until the script says something that is true, which is returned."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            result = self.run(condition, *arguments)
            if result:
                return result
            if time.monotonic() > deadline:
                shown = self.run("return document.body.innerText")
                raise AssertionError(f"never true: {what or condition}\nThe page says:\n{shown}")
            time.sleep(0.1)

    def wait_for_text(self, selector, part):
        return self.wait("return (document.querySelector(arguments[0])?.innerText ?? '')"
                         ".includes(arguments[1])", selector, part,
                         what=f"{part!r} in {selector}")

    def complaints(self):
        """What the browser has complained about since the last call: errors, and what the page's
        own policy forbade."""
        entries = self.command("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]


class Firefox:
    """Opens addresses and runs scripts. `present()` says whether it is here."""
    PROGRAM = "firefox-esr"

    @classmethod
    def present(cls):
        return shutil.which(cls.PROGRAM) is not None

    def __init__(self, directory):
        profile = pathlib.Path(directory) / "firefox"
        profile.mkdir()
        # Any free port, which it writes down.
        (profile / "user.js").write_text('user_pref("marionette.port", 0);\n'
                                         'user_pref("datareporting.policy.firstRunURL", "");\n')
        self.number = 0
        self.connection = None
        self.program = subprocess.Popen(
            [self.PROGRAM, "--headless", "--marionette", "--no-remote", "--profile", profile],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.connection = socket.create_connection(("127.0.0.1", self._port(profile)),
                                                       timeout=PATIENCE_S)
            self.stream = self.connection.makefile("rb")
            self._read()  # who it is
            self._ask("WebDriver:NewSession", {})
        except BaseException:
            self.close()
            raise

    def _port(self, profile):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.program.poll() is None:
            try:
                return int((profile / "MarionetteActivePort").read_text())
            except (OSError, ValueError):
                time.sleep(0.1)
        raise WebDriverError("Firefox did not start")

    # A message is its length, a colon, and JSON.
    def _read(self):
        length = b""
        while (digit := self.stream.read(1)) != b":":
            if not digit:
                raise WebDriverError("Firefox has ended")
            length += digit
        return json.loads(self.stream.read(int(length)))

    def _ask(self, command, parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.connection.sendall(f"{len(message)}:".encode() + message)
        _, _, error, result = self._read()
        if error:
            raise WebDriverError(f"{command}: {error.get('message')}")
        return result

    def open(self, address):
        self._ask("WebDriver:Navigate", {"url": address})

    def run(self, script, *arguments):
        return self._ask("WebDriver:ExecuteScript", {"script": script, "args": arguments})["value"]

    def close(self):
        if self.connection:
            self.connection.close()
        self.program.terminate()
        self.program.wait()
