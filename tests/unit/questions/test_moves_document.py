"""A saved layout that moves: it is read back as it was, and each seeded fault in the file is named by `verify`."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from modelplan.cli import main
from modelplan.outputs.schemas.documents import schema_of

MODELS = Path(__file__).parents[3] / "models"
PSRAM = ("--region", "psram:8MiB,read=80MB/s,write=40MB/s,latency=100ns")
FLASH = ("--region", "flash:1MiB,read=80MB/s,latency=100ns,kind=nvm")
ENGINE = ("--dma", "channels=2,queue=4", "--macs-per-second", "1e8")

Document = dict[str, Any]


def spilled(folder: Path, model: Path, *words: str) -> Document:
    """What `spill` writes for a model."""
    path = folder / f"{model.stem}.json"
    assert main(["spill", str(model), *words, "--json", str(path)]) == 0
    found: Document = json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def unet(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Three memories and an engine of two channels."""
    folder = tmp_path_factory.mktemp("moves")
    return spilled(folder, MODELS / "unet_small.tflite", "--region", "sram:40KiB,rate=400MB/s", *PSRAM, *FLASH, *ENGINE)


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """The exit code of `verify` for a document, and its output."""

    def verify(document: Document, *words: str) -> tuple[int, str]:
        path = tmp_path / "moves.json"
        path.write_text(json.dumps(document))
        code = main(["verify", str(path), *words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out + printed.err

    return verify


def fault(document: Document, change: Callable[[Document], None]) -> Document:
    """The document with a fault."""
    found = deepcopy(document)
    change(found)
    return found


@pytest.mark.slow
def test_a_saved_layout_is_replayed(unet: Document, said: Callable[..., tuple[int, str]]) -> None:
    code, text = said(unet, "--model", str(MODELS / "unet_small.tflite"))
    assert code == 0
    assert f"simulator           ok       one run takes {unet['times']['seconds'] * 1e3:,.3f} ms, as promised" in text
    assert f"referee             ok       {len(unet['stays'])} stays, {len(unet['copies'])} copies" in text
    code, text = said(unet, "--model", str(MODELS / "resnet8.tflite"))
    assert (code, "was not made for" in text) == (4, True)
    jsonschema.validate(unet, schema_of("moves"))


def too_late(document: Document) -> None:
    copy = next(one for one in document["copies"] if one["issued"] < one["due"])
    copy["begin"] += 1.0
    copy["end"] += 1.0


def one_channel(document: Document) -> None:
    for copy in document["copies"]:
        copy["channel"] = 0


def one_byte_above(document: Document) -> None:
    top = max((s for s in document["stays"] if s["in"] == "sram"), key=lambda stay: stay["offset"] + stay["size"])
    top["offset"] = 40 * 1024 - top["size"] + 1


def spilled_and_read(document: Document) -> None:
    """A content that is in no copy leaves before its last reader."""
    copied = {one[end] for one in document["copies"] for end in ("source", "target")}
    alone = (stay for number, stay in enumerate(document["stays"]) if number not in copied)
    next(stay for stay in alone if stay["end"] > stay["start"] + 1)["end"] -= 1


def source_freed(document: Document) -> None:
    copy = next(one for one in document["copies"] if one["to"] == "psram" and one["issued"] < one["due"])
    document["stays"][copy["source"]]["end"] = copy["due"] - 1


def target_in_use(document: Document) -> None:
    copy = next(one for one in document["copies"] if one["from"] == "flash" and one["issued"] < one["due"])
    document["stays"][copy["target"]]["start"] = copy["due"]


def same_bytes(document: Document) -> None:
    there = [stay for stay in document["stays"] if (stay["in"], stay["start"]) == ("sram", 0)]
    first, second = sorted(there, key=lambda stay: stay["size"])[:2]
    second["offset"] = first["offset"]


def never_saved(document: Document) -> None:
    number = next(n for n, one in enumerate(document["copies"]) if one["to"] == "psram")
    del document["copies"][number]


def too_short(document: Document) -> None:
    document["times"]["seconds"] *= 0.99


def bound_above_the_cost(document: Document) -> None:
    document["bound"] = document["times"]["memory"] * 1.01


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (too_late, "has begun: too late"),
        (one_channel, "have channel 0 at the same time"),
        (one_byte_above, "expected within 0..40960"),
        (spilled_and_read, "it was spilled"),
        (source_freed, "its source lasts in steps"),
        (target_in_use, "its target lasts in steps"),
        (same_bytes, "share bytes at step 0"),
        (never_saved, "but nothing brought its content to"),
        (too_short, "after the"),
        (bound_above_the_cost, "the claimed bound is"),
    ],
)
def test_a_fault_in_the_file_is_named(
    change: Callable[[Document], None], reason: str, unet: Document, said: Callable[..., tuple[int, str]]
) -> None:
    code, text = said(fault(unet, change))
    assert (code, reason in text) == (4, True), text


@pytest.mark.slow
def test_copies_in_a_wrong_order_are_found(tmp_path: Path, said: Callable[..., tuple[int, str]]) -> None:
    document = spilled(tmp_path, MODELS / "resnet8.tflite", "--region", "sram:28KiB,rate=400MB/s", *PSRAM)
    copies = document["copies"]
    found = []
    for number in range(len(copies) - 1):
        if copies[number]["due"] == copies[number + 1]["issued"] and copies[number]["to"] == "psram":
            wrong = deepcopy(document)
            moved = wrong["copies"]
            moved[number], moved[number + 1] = moved[number + 1], moved[number]
            found.append(said(wrong))
    assert any(code == 4 and "an earlier copy has overwritten it" in text for code, text in found)


@pytest.mark.slow
def test_state_that_is_never_written_back_is_found(
    corpus: Path, tmp_path: Path, said: Callable[..., tuple[int, str]]
) -> None:
    model, sram = corpus / "tflite" / "keyword_scrambled_8bit.tflite", ("--region", "sram:2KiB,rate=400MB/s")
    document = spilled(tmp_path, model, *sram, *PSRAM, "--copied-only", "psram", *FLASH)
    assert said(document)[0] == 0
    back = next(n for n, one in enumerate(document["copies"]) if one["target"] == -1)
    del document["copies"][back]
    code, text = said(document)
    assert (code, "what changed is never written back to psram" in text) == (4, True), text


def without_stays(document: Document) -> None:
    del document["stays"]


def nan(document: Document) -> None:
    document["times"]["seconds"] = float("nan")


def unknown_memory(document: Document) -> None:
    document["copied_only"] = ["dram"]


def unknown_region(document: Document) -> None:
    document["stays"][3]["region"] = 7


def negative_rate(document: Document) -> None:
    document["regions"][0]["bandwidth"] = -1


def a_text(document: Document) -> None:
    document["copies"][0]["begin"] = "soon"


def no_object(document: Document) -> None:
    document["copies"][0] = 3


def another_schema(document: Document) -> None:
    document["schema"] = 9


def no_channels(document: Document) -> None:
    document["dma"]["channels"] = -2


def many_channels(document: Document) -> None:
    document["dma"]["channels"] = 2**40


def no_plan(document: Document) -> None:
    del document["plan"]


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        (without_stays, 3, "stays is None, expected list"),
        (nan, 3, "NaN is no number"),
        (unknown_memory, 3, "copied_only names 'dram', which is no region"),
        (unknown_region, 4, "stay 3 names buffer"),
        (negative_rate, 3, "a bandwidth of -1 bytes/s"),
        (a_text, 3, "copies[0].begin is 'soon'"),
        (no_object, 3, "copies[0] is 3, expected dict"),
        (another_schema, 3, "expected a document of kind 'moves' and schema 2"),
        (no_channels, 3, "a DMA engine of -2 channels"),
        (many_channels, 3, "a DMA engine of 1099511627776 channels"),
        (no_plan, 3, "plan: schema is"),
    ],
)
def test_what_is_no_such_document_is_refused(
    change: Callable[[Document], None],
    code: int,
    reason: str,
    unet: Document,
    said: Callable[..., tuple[int, str]],
) -> None:
    found, text = said(fault(unet, change))
    assert (found, reason in text) == (code, True), text
