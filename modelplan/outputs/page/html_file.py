"""Puts a page into one HTML file: the columns, the style, the plotting library and the page's own scripts.

The file loads nothing, sends nothing and runs no script but those whose hashes its Content-Security-Policy names.
Names out of a model are only ever data: no `<` of theirs reaches the markup, and the scripts show them as text.
"""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path

from modelplan.answers.page_views import Page, page_of
from modelplan.model import Plan
from modelplan.outputs.page.columns import columns_of, shown
from modelplan.primitives import _core

#: Where the build puts the parts of BokehJS that the page uses, in the order in which they are run, with their licence.
_BOKEHJS, _PARTS = Path(_core.__file__).parents[1] / "bokehjs", ("bokeh.min.js", "bokeh-api.min.js")
#: The page's own scripts, in the order in which they are run: each uses what stands before it.
SCRIPTS = (
    "plans.js", "looks.js", "lettering.js", "rows.js", "chart.js", "words.js", "panels.js", "buffers.js", "graph.js",
    "changes.js", "field.js", "page.js", "search.js", "keys.js", "address.js", "start.js",
)  # fmt: skip


def render(plan: Plan) -> bytes:
    """The page of one plan: same plan, same bytes."""
    return html(page_of(plan))


def html(page: Page) -> bytes:
    """The file: about 1.5 MB of library, and 100 to 200 bytes for each buffer of each view."""
    own = "\n".join(_asset(name) for name in SCRIPTS)
    library = ((_BOKEHJS / name).read_text(encoding="utf-8") for name in _PARTS)
    scripts = [_closed(script) for script in (*library, own)]
    data = json.dumps(columns_of(page), ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "policy": _policy(scripts),
        "title": escape(shown(page.title)),
        "style": _asset("page.css"),
        "data": data,
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    # One pass over the template: what is put in is never searched for places.
    head, *rest = _asset("page.html").split("{{")
    pieces = [head]
    for piece in rest:
        name, _, after = piece.partition("}}")
        pieces += [parts[name], after]
    return "".join(pieces).encode()


def _asset(name: str) -> str:
    return (files("modelplan.outputs.page") / name).read_text(encoding="utf-8")


def _closed(script: str) -> str:
    """A script that ends where its element does: an end tag inside a text of it is written otherwise."""
    return script.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: list[str]) -> str:
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    rules = (
        "default-src 'none'",
        f"script-src {hashes}",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)
