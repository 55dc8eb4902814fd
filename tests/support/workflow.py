"""The steps of a composite action run as GitHub runs them, and an API of comments on the local machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

#: What GitHub starts for `shell: bash`.
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")


@dataclass
class Ran:
    """What the steps said, the exit code of the first that failed, the outputs, and the summary of the job."""

    said: str = ""
    code: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


def run_action(
    action: Path, workspace: Path, temporary: Path, inputs: Mapping[str, str], contexts: Mapping[str, str]
) -> Ran:
    """Runs the steps of an action with its defaults; a step after one that failed is not run."""
    described = yaml.safe_load(action.read_text())
    known = {f"inputs.{name}": str(one.get("default", "")) for name, one in described["inputs"].items()}
    assert {f"inputs.{name}" for name in inputs} <= known.keys()
    known |= {f"inputs.{name}": value for name, value in inputs.items()}
    known |= {"github.action_path": str(action.parent), "runner.temp": str(temporary), **contexts}
    found = Ran()
    for step in described["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "what others wrote must not become a part of a script"
        _run_step(step, known, workspace, temporary, found)
        if found.code:
            break
    found.outputs = {name: _filled(one["value"], known) for name, one in described["outputs"].items()}
    return found


def _run_step(step: Mapping[str, Any], known: dict[str, str], workspace: Path, temporary: Path, found: Ran) -> None:
    files = {name: temporary / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.write_text("")
    script = temporary / "step.sh"
    script.write_text(step["run"])
    environment = {name: _filled(value, known) for name, value in step.get("env", {}).items()}
    environment |= {"GITHUB_WORKSPACE": str(workspace), **{name: str(path) for name, path in files.items()}}
    done = subprocess.run(
        [*BASH, str(script)],
        cwd=workspace / _filled(step.get("working-directory", "."), known),
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    found.said += done.stdout
    found.code = done.returncode
    found.summary += files["GITHUB_STEP_SUMMARY"].read_text()
    lines = files["GITHUB_OUTPUT"].read_text().splitlines()
    known |= {f"steps.{step['id']}.outputs.{key}": value for key, _, value in (line.partition("=") for line in lines)}


def _filled(text: str, known: Mapping[str, str]) -> str:
    """The text with its expressions; what is not known is empty, as on GitHub."""
    return re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", lambda found: known.get(found[1], ""), text)


@dataclass
class Comments:
    """The comments of a pull request, the requests that came, and which methods are answered by an error."""

    rows: list[dict[str, Any]]
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    url: str = ""

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        """The answer of the API to one request."""
        url = urlsplit(target)
        if method in self.refused:
            return self.refused[method], {"message": "no"}
        if (method, url.path) == ("GET", "/repos/o/r/issues/7/comments"):
            page, size = (int(parse_qs(url.query)[name][0]) for name in ("page", "per_page"))
            return 200, self.rows[(page - 1) * size : page * size]
        text = json.loads(body)["body"] if body else ""
        if len(text) > 65_536:
            return 422, {"message": "body is too long"}
        if (method, url.path) == ("POST", "/repos/o/r/issues/7/comments"):
            self.rows.append({"id": 1000 + len(self.rows), "body": text})
            return 201, self.rows[-1]
        for row in self.rows:
            if (method, url.path) == ("PATCH", f"/repos/o/r/issues/comments/{row['id']}"):
                row["body"] = text
                return 200, row
        return 404, {"message": "Not Found"}


@contextmanager
def served(comments: Comments) -> Iterator[Comments]:
    """The API, as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            comments.requests.append((self.command, self.path, str(self.headers.get("Authorization"))))
            code, found = comments.answer(self.command, self.path, body)
            content = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PATCH = do_GET  # noqa: N815

        def log_message(self, *words: object) -> None:
            pass

    with _running(Handler) as comments.url:
        yield comments


@contextmanager
def served_folder(folder: Path) -> Iterator[str]:
    """The address of the files of a folder, as long as the context lasts."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *words: Any) -> None:
            super().__init__(*words, directory=str(folder))

        def log_message(self, *words: object) -> None:
            pass

    with _running(Handler) as address:
        yield address


@contextmanager
def _running(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
