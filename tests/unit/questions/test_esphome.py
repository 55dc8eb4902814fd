"""The tensor arena in the manifest of a wake word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import run

from modelplan import EsphomeRequest, ModelError, RequestError, esphome_arena
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.kernels import LIBRARY_GROUPS

MANIFEST = """{
  "type": "micro", "wake_word": "Okay Nabu", "model": "okay_nabu.tflite", "version": 2,
  "micro": {"probability_cutoff": 0.97,
            "tensor_arena_size" : 26080, "minimum_esphome_version": "2024.7.0"}
}
"""


@pytest.fixture
def manifest(corpus: Path, tmp_path: Path) -> Path:
    shutil.copy(corpus / "tflite" / "wakeword" / "okay_nabu.tflite", tmp_path)
    (tmp_path / "okay_nabu.json").write_text(MANIFEST)
    return tmp_path / "okay_nabu.json"


def test_the_size_is_enough_for_every_version(manifest: Path) -> None:
    answer = esphome_arena(EsphomeRequest(str(manifest)))
    model = load_tflite(manifest.with_suffix(".tflite"))
    sizes = {name: arena(model, "xtensa", name).size() for name in (*LIBRARY_GROUPS["esp-nn@all"], "esp-nn-generic")}
    assert {one.library: one.arena for one in answer.libraries} == sizes
    assert (answer.stated, answer.needed, answer.enough) == (26080, max(sizes.values()), False)
    assert answer.manifest == MANIFEST.replace("26080", str(answer.needed))


def test_check_writes_nothing_and_the_command_only_the_number(manifest: Path, tmp_path: Path) -> None:
    assert run("esphome", manifest, "--check").returncode == 1
    assert manifest.read_text() == MANIFEST
    other = tmp_path / "other.json"
    assert run("esphome", manifest, "-o", other).returncode == 0
    assert manifest.read_text() == MANIFEST
    done = run("esphome", manifest)
    assert done.returncode == 0
    assert manifest.read_text() == other.read_text() != MANIFEST
    size = json.loads(manifest.read_text())["micro"]["tensor_arena_size"]
    assert f"{size} written to {manifest}" in " ".join(done.stdout.split())
    assert run("esphome", manifest, "--check").returncode == 0


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("{", ModelError, "no JSON"),
        ("[]", ModelError, "expected an object"),
        ('{"model": "okay_nabu.tflite"}', RequestError, 'one number "tensor_arena_size" under "micro"'),
        ('{"model": "okay_nabu.tflite", "micro": {"tensor_arena_size": "1"}}', RequestError, "one number"),
        ('{"model": "other.tflite", "micro": {"tensor_arena_size": 1}}', ModelError, "'other.tflite' is not beside it"),
        ('{"micro": {"tensor_arena_size": 1}}', ModelError, "is not beside it"),
        ("[" * 100_000, ModelError, "no JSON"),
    ],
)
def test_what_is_no_manifest_is_refused(manifest: Path, text: str, error: type[Exception], reason: str) -> None:
    manifest.write_text(text)
    with pytest.raises(error, match=reason):
        esphome_arena(EsphomeRequest(str(manifest)))


def test_a_model_that_tflm_refuses_gets_no_number(manifest: Path, models: Path) -> None:
    manifest.with_suffix(".tflite").write_bytes((models / "ds_cnn_kws.tflite").read_bytes()[:2000])
    with pytest.raises(ModelError):
        esphome_arena(EsphomeRequest(str(manifest)))
