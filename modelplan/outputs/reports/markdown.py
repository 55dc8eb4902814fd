"""Text out of files in Markdown: no name may become a mark, HTML, or a mention of somebody."""

import re

from modelplan.outputs.report import printable

_MARKS = re.compile(r"([\\`*_{}\[\]~|#!])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", "@": "&#64;"})


def literal(text: str) -> str:
    r"""The text as Markdown shows it literally.

    >>> print(literal("a_b <i>|x @someone"))
    a\_b &lt;i>\|x &#64;someone
    """
    return _MARKS.sub(r"\\\1", printable(text)).translate(_ENTITIES)
