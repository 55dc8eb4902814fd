"""Outcomes of checks in each format: names are escaped, limits are kept, nothing is lost in silence."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from modelplan.answers.check_outcomes import Check, CheckSetting, Earlier, Figures, Findings, Limits, Outcome
from modelplan.model import Alternative, Part, Requirement
from modelplan.outputs import names_of, render
from modelplan.outputs.checks.markdown import MOST, marker
from modelplan.questions.budgets.budget_checks import judgements
from modelplan.questions.budgets.project_budgets import parse_growth

NEEDED = Requirement(2000, 1600, (Part("activations", 1600), Part("tail", 400)), "by heart", "TENSOR_ARENA_SIZE")
FIX = Alternative("plan: views share bytes", ("modelplan fit --only plan a -o b", "next"), replace(NEEDED, arena=900))
CAUSES = ("op 3 CONV_2D: output 512 -> 1,024 bytes; +512 bytes at the peak and kept for it", "[7 others]")
#: What a name in a file of somebody else may hold.
HOSTILE = "a|b`c``d\n::error::x%\r<!-- --><script>@all,e:f\x1b[0m"


def formatted(findings: Findings, name: str) -> str:
    return str(render(findings, name))


def outcome(name: str, limit: int, then: int | None = None, **more: object) -> Outcome:
    """A model of 2,000 bytes of arena with a limit, which needed `then` bytes before."""
    earlier = None if then is None else Earlier("main", Figures(then, 1, 1))
    check = Check(name, f"models/{name}.tflite", f"models/{name}.tflite", Limits(limit), "board")
    found = Outcome(check, NEEDED, 5000, CheckSetting("tflm", "32", "reference"), earlier=earlier)
    figures = found.figures
    assert figures is not None
    judged = tuple(judgements(check.limits, figures, earlier))
    return replace(found, judgements=judged, exit_code=int(limit < 2000), **more)  # type: ignore[arg-type]


FAILED = outcome("net", 1000, 1488, others=(FIX,), causes=CAUSES)
REFUSED = replace(outcome("odd", 9000), needed=replace(NEEDED, refusals=("op 0 X: no kernel",)), judgements=())
UNREAD = Outcome(
    Check("gone", "gone.tflite", "gone.tflite", Limits(1)), problem="gone.tflite: No such file", exit_code=3
)
UNKNOWN = replace(
    outcome("new", 9000), judgements=tuple(judgements(Limits(growth=parse_growth("1%")), Figures(1, 1, 1), None))
)
ALL = Findings("modelplan.toml", (outcome("fine", 9000, 2000), FAILED, REFUSED, UNREAD, UNKNOWN))


def test_json_has_the_keys_of_size_limit() -> None:
    rows = {row["name"]: row for row in json.loads(formatted(ALL, "json"))}
    assert rows["fine"] | {"name": "fine", "passed": True, "size": 2000, "sizeLimit": 9000} == rows["fine"]
    net = rows["net"]
    assert (net["passed"], net["size"], net["sizeLimit"], net["arena"], net["head"]) == (False, 2000, 1000, 2000, 1600)
    assert net["baseline"] == {"source": "main", "figures": {"arena": 1488, "head": 1, "flash": 1}, "change": 512}
    assert net["causes"] == list(CAUSES)
    assert net["fix"] == {"change": FIX.change, "commands": list(FIX.commands), "size": 900}
    assert (rows["odd"]["passed"], rows["odd"]["size"], rows["odd"]["reason"]) == (False, None, "op 0 X: no kernel")
    assert (rows["gone"]["passed"], rows["gone"]["reason"]) == (False, "gone.tflite: No such file")
    assert (rows["new, growth"]["passed"], rows["new, growth"]["size"]) == (True, None)
    assert rows["new, growth"]["reason"].startswith("n/a: no baseline")


def test_the_comment_names_what_failed_what_grew_and_what_would_fit() -> None:
    text = formatted(ALL, "markdown")
    lines = text.splitlines()
    assert lines[0] == "<!-- modelplan check modelplan.toml -->"
    assert lines[1] == "### Memory: modelplan.toml: 5 checks, 3 failed"
    assert "| :x: | `net` | arena | 2,000 | 1,000 | +512 |" in lines
    assert "| :x: | `odd` | does not run | | | n/a |" in lines
    assert "| :x: | `gone` | not judged | | | n/a |" in lines
    assert "* arena 1,488 -> 2,000 bytes (+512) since main; ABI 32, reference kernels" in lines
    assert f"  * `{CAUSES[0]}`" in lines
    assert "modelplan fit --only plan a -o b && next" in lines
    assert text.index("`net`") < text.index("<details>") < text.index("`fine`")
    assert "growth n/a for 1 check: no baseline is given" in text


def test_the_comment_keeps_githubs_limit_and_counts_what_is_left_out() -> None:
    many = tuple(outcome(f"{'long ü' * 20} {n}", 1000 if n % 2 else 9000, 100, causes=CAUSES) for n in range(900))
    text = formatted(Findings("modelplan.toml", many), "markdown")
    assert MOST - 2000 < len(text.encode()) <= MOST
    (left,) = re.findall(r"^([\d,]+) rows left out: a comment holds 64 KiB", text, re.MULTILINE)
    shown = text.count("\n| :") + text.count("->") + text.count("nothing tried fits")
    assert int(left.replace(",", "")) >= 900 - shown > 0
    few = formatted(Findings("modelplan.toml", many[:3]), "markdown")
    assert "left out" not in few


def test_names_have_no_power_over_markdown() -> None:
    odd = replace(FAILED, check=replace(FAILED.check, name=HOSTILE, key=HOSTILE), causes=(HOSTILE,), others=())
    text = formatted(Findings(HOSTILE, (odd,)), "markdown")
    assert marker(Findings(HOSTILE, ())).count("-->") == 1
    without_code = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text.split("\n", 1)[1])
    for character in ("<script", "@all", "\x1b", "\r"):
        assert character not in without_code
    row = next(line for line in text.splitlines() if line.startswith("| :x:"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 7


def test_a_workflow_gets_one_error_for_each_failure() -> None:
    said = formatted(replace(ALL, folder="firmware"), "github").splitlines()
    assert [line.split("::")[1] for line in said] == [
        "error file=firmware/models/net.tflite,title=net%3A arena 1%2C000 B too much",
        "error file=firmware/models/odd.tflite,title=odd%3A does not run",
        "error file=firmware/gone.tflite,title=gone%3A not judged",
    ]
    message = said[0].split("::", 2)[2]
    assert message.split("%0A") == [
        "arena 1.95 KiB (2,000 B), allowed 1,000 B",
        "+512 bytes of arena since main",
        *CAUSES,
        "plan: views share bytes: 900 B",
        "fits after: modelplan fit --only plan a -o b && next",
    ]


@pytest.mark.parametrize("count", [9, 10, 11, 300])
def test_ten_annotations_are_all_that_github_shows(count: int) -> None:
    failed = tuple(outcome(f"net{n}", 1000) for n in range(count))
    said = formatted(Findings("modelplan.toml", failed), "github").splitlines()
    assert len(said) == min(count, 10)
    if count > 10:
        assert said[-1].startswith(f"::error title={count - 9} more checks failed::")
        assert set(said[-1].split("::", 2)[2].split("%0A")) == {f"net{n}" for n in range(9, count)}


def test_names_have_no_power_over_workflow_commands() -> None:
    odd = replace(FAILED, check=replace(FAILED.check, name=HOSTILE, model=HOSTILE), causes=(HOSTILE,))
    (line,) = formatted(Findings("", (odd,)), "github").splitlines()
    properties, message = line.removeprefix("::error ").split("::", 1)
    assert [one.partition("=")[0] for one in properties.split(",")] == ["file", "title"]
    assert not re.search(r"%(?!25|0A|0D|3A|2C)", line)
    assert "\x1b" not in message


def test_a_workflow_without_failures_is_told_what_changed() -> None:
    (line,) = formatted(Findings("", (outcome("net", 9000, 1488, causes=CAUSES),)), "github").splitlines()
    assert line.startswith(
        "::notice title=modelplan::1 check, all passed%0Amodels/net.tflite: arena 1,488 -> 2,000 bytes (+512)"
    )
    assert CAUSES[0] in line


#: Elements of a JUnit report with the attributes that they must and may have, and the elements that they hold, in the
#: schema of the xUnit plugin of Jenkins.
SCHEMA = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests"}, {"failures", "errors", "skipped", "time", "timestamp", "id"}, {"testcase"}),
    "testcase": ({"name", "classname"}, {"assertions", "time", "status"}, {"skipped", "error", "failure"}),
    "skipped": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "failure": (set(), {"type", "message"}, set()),
}


def test_junit_follows_the_schema_and_counts() -> None:
    hostile = replace(FAILED, check=replace(FAILED.check, name=HOSTILE), causes=(HOSTILE, "\ufffe\x00"))
    document = ElementTree.fromstring(formatted(replace(ALL, outcomes=(*ALL.outcomes, hostile)), "junit"))
    for element in document.iter():
        must, may, holds = SCHEMA[element.tag]
        assert must <= set(element.attrib) <= must | may
        assert {child.tag for child in element} <= holds
    (suite,) = document
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["6", "2", "2", "1"]
    cases = {str(case.get("name")): case for case in suite}
    failure = cases["net"].find("failure")
    assert failure is not None
    assert failure.get("message") == "arena 1.95 KiB (2,000 B), allowed 1,000 B"
    assert CAUSES[0] in str(failure.text)
    assert cases["odd"].find("error") is not None
    assert cases["new, growth"].find("skipped") is not None


def test_text_tells_of_each_check_and_of_each_failure() -> None:
    text = formatted(ALL, "text")
    assert text.startswith("modelplan.toml: 5 checks, 3 failed\n")
    for said in (
        "net: does not fit",
        "odd: does not run",
        "gone: not judged",
        "1,000 B",
        *CAUSES,
        "fits after: modelplan",
    ):
        assert said in text
    assert "fine: fits" not in text


@pytest.mark.parametrize("name", names_of("Findings"))
def test_every_format_can_say_that_nothing_failed(name: str) -> None:
    fine = Findings("modelplan.toml", (outcome("fine", 9000),))
    assert fine.failed == []
    assert "fine" in formatted(fine, name) or name == "github"


def test_no_time_for_alternatives_is_said() -> None:
    late = replace(FAILED, others=None)
    for name in ("text", "markdown", "github", "junit"):
        assert "not looked for in the time there was" in " ".join(formatted(Findings("", (late,)), name).split())


def test_a_missing_baseline_is_told_without_a_limit_of_growth_too() -> None:
    alone = replace(outcome("net", 9000), earlier=Earlier("main", None, "main has no net"))
    for name in ("text", "markdown", "github"):
        assert "growth n/a for 1 check: main has no net" in formatted(Findings("", (alone,)), name)
