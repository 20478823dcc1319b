"""A call of two Chromium browsers, one at each end of a scenario's link, with what the browsers measure.

    brakelight run call.toml --on emulator --server 'python3 call.py answer > answer.csv' --command 'python3 call.py offer > offer.csv'

`offer` sends a video of 640x360 at 30 frames a second, at most $MOST bit/s (2,500,000); `answer` shows it. Each prints
a line a second, from its browser's getStats (https://www.w3.org/TR/webrtc-stats/ explains the names).
$CHROMIUM_FLAGS are further flags for the browser, such as --force-fieldtrials=....
"""

import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
PORT = 8000
WIDTH, HEIGHT, FRAMES = 640, 360, 30
FIELDS = {
    "offer": [
        "at", "targetBitrate", "bytesSent", "headerBytesSent", "retransmittedBytesSent", "framesSent",
        "availableOutgoingBitrate", "currentRoundTripTime", "qualityLimitationReason",
    ],
    "answer": [
        "at", "bytesReceived", "packetsLost", "framesDecoded", "freezeCount", "totalFreezesDuration",
        "jitterBufferDelay", "jitterBufferEmittedCount",
    ],
}  # fmt: skip


class Exchange(BaseHTTPRequestHandler):
    """Serves the page, and hands the two descriptions over: who asks for one waits until it is there."""

    kept: dict[str, bytes] = {}
    change = threading.Condition()

    def do_GET(self) -> None:
        name = self.path.split("?")[0].strip("/")
        if name == "call.html":
            self.reply((HERE / name).read_bytes(), "text/html")
            return
        with self.change:
            self.change.wait_for(lambda: name in self.kept, timeout=30)
            self.reply(self.kept.get(name, b"null"), "application/json")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.change:
            self.kept[self.path.strip("/")] = body
            self.change.notify_all()
        self.reply(b"", "text/plain")

    def reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing: standard error is for what fails."""


def camera(path: Path) -> None:
    """Writes a moving picture that an encoder needs some Mbit/s for: waves that run, under a little noise."""
    draw = random.Random(1)
    grains = [draw.randbytes(WIDTH * HEIGHT) for _ in range(4)]
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F30:1 Ip A1:1 C420\n".encode())
        for frame in range(FRAMES):
            turn = 2 * math.pi * frame / FRAMES
            luma = bytearray()
            for y in range(HEIGHT):
                down = math.cos(y / 17 - turn)
                for x in range(0, WIDTH, 2):
                    wave = 60 * math.sin(x / 23 + 2 * turn) * down + 40 * math.sin((x + y) / 5 + 5 * turn)
                    luma += bytes([int(128 + wave)]) * 2
            for place, grain in enumerate(grains[frame % 4]):
                luma[place] += grain >> 5
            file.write(b"FRAME\n" + luma + b"\x80" * (WIDTH * HEIGHT // 2))


def browse(side: str, host: str, scratch: Path) -> subprocess.Popen[str]:
    """Starts a browser with the page of one side. What the page writes to its console comes on standard error."""
    picture = scratch / "camera.y4m"
    camera(picture)
    page = f"http://{host}:{PORT}"
    return subprocess.Popen(
        [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--mute-audio", "--no-first-run",
            "--disable-background-networking", "--autoplay-policy=no-user-gesture-required",
            "--enable-logging=stderr", f"--user-data-dir={scratch / 'profile'}",
            # A page without TLS may use the camera, and addresses of the link are not hidden.
            f"--unsafely-treat-insecure-origin-as-secure={page}", "--disable-features=WebRtcHideLocalIpsWithMdns",
            "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-video-capture={picture}", *os.environ.get("CHROMIUM_FLAGS", "").split(),
            f"{page}/call.html?side={side}&most={os.environ.get('MOST', '2500000')}",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def main(side: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    host = os.environ["BRAKELIGHT_HOST"] if side == "offer" else "localhost"
    end = time.monotonic() + float(os.environ["BRAKELIGHT_SECONDS"])
    if side == "answer":
        serve = ThreadingHTTPServer(("0.0.0.0", PORT), Exchange).serve_forever
        threading.Thread(target=serve, daemon=True).start()
    with tempfile.TemporaryDirectory() as scratch:
        browser = browse(side, host, Path(scratch))
        out = csv.DictWriter(sys.stdout, FIELDS[side], restval="", extrasaction="ignore")
        out.writeheader()
        try:
            for line in browser.stderr or ():
                if '"FAILED ' in line:
                    sys.exit(line)
                if '"STATS ' in line:
                    out.writerow(json.loads(line.split('"STATS ', 1)[1].rsplit('", source:', 1)[0]))
                    sys.stdout.flush()
                if side == "offer" and time.monotonic() > end:
                    break
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()


main(sys.argv[1])
