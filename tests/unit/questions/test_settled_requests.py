"""What requests take in place of their types, what a wrong type is told, and how answers show themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import modelplan as m
from modelplan.primitives.settled_requests import SettledRequest

MODELS = Path(__file__).resolve().parents[3] / "models"
#: The package as callers see it who check no types.
ASKED: Any = m
KWS, TABLE = MODELS / "ds_cnn_kws.tflite", "id,lower,upper,size\na,0,3,16\nb,2,5,32\n"


def test_requests_take_what_people_pass() -> None:
    request: Any = m.AnalyzeRequest
    settled = request(KWS, target="stm32h743", capacity="64KiB", dims="a=1", why_not=["x", "y"])
    assert (settled.path, settled.capacity, settled.dims) == (str(KWS), 65536, ("a=1",))
    assert (settled.target.device.name, settled.why_not) == ("stm32h743", ("x", "y"))
    fitting: Any = m.FitRequest
    assert fitting(KWS, budget="64KiB", max_flash="1MiB").max_flash == 1 << 20
    placing: Any = m.MemoriesRequest
    placed = placing(KWS, "16KiB+8MiB")
    assert [type(model).__name__ for model in placed.models] == ["ModelRequest"]
    assert [region.size for region in placed.regions] == [16 << 10, 8 << 20]


def test_questions_take_a_path(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    assert m.analyze(KWS).requirement == m.analyze(m.AnalyzeRequest(str(KWS))).requirement
    assert m.plan(KWS).steps == m.plan(m.load(str(KWS))).steps  # type: ignore[arg-type]
    assert m.measure(str(KWS)) == m.measure(m.load(str(KWS)))  # type: ignore[arg-type]
    assert m.solve(tmp_path / "t.csv").fits
    chosen = m.choose_target("stm32h743")
    assert chosen is not None
    assert m.target_verdicts(KWS, "stm32h743,").rows[0].fits


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: ASKED.analyze(3), "analyze: found 3, expected an AnalyzeRequest or a path"),
        (lambda: ASKED.analyze(ASKED.ModelRequest("x.tflite")), "expected an AnalyzeRequest or a path"),
        (lambda: ASKED.AnalyzeRequest(7), "AnalyzeRequest: path is 7, expected text"),
        (lambda: ASKED.AnalyzeRequest("x", dims=3), "dims is 3, expected texts in a tuple or list"),
        (
            lambda: ASKED.AnalyzeRequest("x", capacity=1.5),
            "capacity is 1.5, expected a whole number, or bytes in words",
        ),
        (lambda: ASKED.AnalyzeRequest("x", capacity="64KB"), "'64KB' may mean"),
        (lambda: ASKED.AnalyzeRequest("x", advice="yes"), "advice is 'yes', expected True or False"),
        (lambda: ASKED.AnalyzeRequest("x", threads=True), "threads is True, expected a whole number"),
        (lambda: ASKED.AnalyzeRequest("x", target=3), "target is 3, expected the name of a device"),
        (lambda: ASKED.AnalyzeRequest("x", target="nowhere"), "no target 'nowhere'"),
        (lambda: ASKED.plan(3), "found int 3, expected a Graph of `load` or a model's path"),
    ],
)
def test_a_wrong_type_is_told_what_was_expected(ask: Callable[[], object], said: str) -> None:
    with pytest.raises(m.RequestError) as caught:
        ask()
    assert said in str(caught.value)


def test_help_explains_every_field_of_a_request() -> None:
    for name in m.__all__:
        kind = getattr(m, name)
        if isinstance(kind, type) and issubclass(kind, SettledRequest):
            missing = [field for field in kind.__dataclass_fields__ if f"\n        {field}: " not in str(kind.__doc__)]  # type: ignore[attr-defined]
            assert not missing, name


@pytest.mark.parametrize(
    "answer",
    [
        lambda: m.analyze(KWS),
        lambda: next(m.analysis_stages(KWS)),
        lambda: m.explain(m.ExplainRequest(str(KWS), kernels="cmsis-dsp")),
        lambda: m.compare(KWS),
        lambda: m.diff(m.ModelRequest(str(KWS)), m.ModelRequest(str(MODELS / "resnet8.tflite"))),
        lambda: m.fit_c(KWS),
        lambda: m.reorder(KWS),
        lambda: m.pack(m.PackRequest(str(KWS))),
        lambda: m.target_verdicts(KWS, "all"),
        lambda: m.choose_target("stm32h743"),
    ],
)
def test_an_answer_shows_itself_on_one_screen(answer: Callable[[], object]) -> None:
    said = answer()
    shown = repr(said)
    assert 80 < len(shown) < 4000
    assert shown.count("\n") < 50
    assert type(said).__name__ in shown or "tflite" in shown


def test_a_notebook_gets_number_peak_and_map() -> None:
    html = m.analyze(KWS)._repr_html_()
    assert html
    for said in ("TENSOR_ARENA_SIZE 57248", "Peak at step 0", "data:image/svg+xml", 'alt="map of'):
        assert said in html
