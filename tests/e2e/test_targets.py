"""The installed command with targets: what a verdict says, which option wins, and what wrong input ends with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run

DATA = Path(__file__).parents[1] / "data" / "targets"


@pytest.fixture
def model(models: Path) -> Path:
    return models / "ds_cnn_kws.tflite"


def test_check_says_which_block_of_which_target_and_what_is_reserved(model: Path) -> None:
    done = run("check", model, "--target", "nrf52840")
    assert done.returncode == 0
    for said in ("nrf52840: 208.00 KiB (212,992 B)", "sram0 at 0x2000c000", "for the SoftDevice", "cmsis-dsp kernels"):
        assert said in done.stdout, said
    free = run("check", model, "--target", "nrf52840", "--reserve", "sram0=0").stdout
    assert "available 256.00 KiB (262,144 B)" in free
    document = json.loads(run("check", model, "--target", "nrf52840", "--json", "-").stdout)
    assert document["budget"] == document["target"]["budget"] == 212_992
    assert document["target"]["reserved"] == {"sram0": 49_152}


def test_a_budget_in_bytes_wins_over_the_target_and_says_so(model: Path) -> None:
    done = run("check", model, "--target", "rp2040", "--budget", "4KiB")
    assert done.returncode == 1
    assert "4.00 KiB (4,096 B) as --budget says, in place of the block" in done.stdout
    assert "cmsis-c kernels" in done.stdout


def test_the_abi_and_kernels_of_the_caller_win_over_those_of_the_target(model: Path) -> None:
    usual = run("check", model, "--target", "corstone-300").stdout
    assert "ABI cortex-m, cmsis-mve kernels" in usual
    own = run("check", model, "--target", "corstone-300", "--abi", "x86-64", "--kernels", "reference").stdout
    assert "ABI x86-64, reference kernels" in own


def test_kernels_of_a_target_do_not_trouble_another_runtime(models: Path) -> None:
    onnx = next(models.glob("*.onnx"))
    assert run("check", onnx, "--target", "corstone-300#ddr", "--runtime", "generic").returncode == 0


def test_what_a_script_leaves_decides(model: Path, tmp_path: Path) -> None:
    for size, code in (("64K", 0), ("20K", 1)):
        (tmp_path / "app.ld").write_text(f"MEMORY {{ RAM (rwx) : ORIGIN = 0x20000000, LENGTH = {size} }}")
        assert run("check", model, "--target", f"from:{tmp_path / 'app.ld'}").returncode == code


@pytest.mark.slow
def test_analyze_compare_and_fit_take_a_target(model: Path, tmp_path: Path) -> None:
    analyzed = run("analyze", model, "--target", "rp2040")
    assert analyzed.returncode == 0
    assert "rp2040: 264.00 KiB (270,336 B)" in analyzed.stdout
    assert "capacity 264.00 KiB (270,336 B): fits" in analyzed.stdout
    (tmp_path / "small.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\nc,2,4,8\n")
    compared = run("compare", tmp_path / "small.csv", "--target", "minimalloc-1MiB", "--seconds", "0.1")
    assert compared.returncode == 0
    assert "the capacity of a set of problems, not a figure of a device" in compared.stdout
    (tmp_path / "large.csv").write_text("id,lower,upper,size\na,0,2,1000000\nb,1,3,900000\n")
    drawn = run("compare", tmp_path / "large.csv", "--target", "minimalloc-1MiB", "--draw", tmp_path / "large.map.svg")
    assert drawn.returncode == 0
    assert "beyond the capacity" in (tmp_path / "large.map.svg").read_text()
    banked = run("analyze", model, "--target", "nvdla-large", "--draw", tmp_path / "model.map.svg")
    assert banked.returncode == 0
    assert "cbuf bank 0" in (tmp_path / "model.map.svg").read_text()
    fitted = run("fit", model, "--target", "himax-we2", "-o", tmp_path / "out.tflite")
    assert fitted.returncode == 0
    assert "ABI cortex-m, cmsis-mve kernels" in fitted.stdout
    assert (tmp_path / "out.tflite").exists()


def test_targets_as_json(tmp_path: Path) -> None:
    document = json.loads(run("targets", "--json", "-").stdout)
    rows = {row["name"]: row for row in document["targets"]}
    assert rows["stm32h743"]["arena"] == 524_288
    assert rows["edgetpu"]["arena"] is None
    assert run("targets", "rp2350", "--json", tmp_path / "one.json").returncode == 0
    assert len(json.loads((tmp_path / "one.json").read_text())["targets"]) == 1


WRONG = [
    (("--target", "from:{0}/none.ld"), 3, "none.ld: No such file"),
    (("--target", "{0}/none.toml"), 3, "none.toml: No such file"),
    (("--target", "from:{0}/model.ld"), 3, "model.ld: not text"),
    (("--target", "from:{0}/text.ld"), 3, "text.ld: no MEMORY block"),
    (("--target", "from:{0}/twice.ld"), 3, "twice.ld:3: two regions are called RAM"),
    (("--target", "from:{0}/zero.ld"), 3, "zero.ld:1: region RAM"),
    (("--target", "from:{0}/negative.ld"), 3, "negative.ld:1: region RAM: region RAM has -1024 bytes"),
    (("--target", "nrf5284"), 2, "no target 'nrf5284'; near are: nrf52840"),
    (("--target", "edgetpu"), 2, "caches weights"),
    (("--target", "rp2040#sram9"), 2, "no region 'sram9'"),
    (("--target", "rp2040", "--reserve", "sram"), 2, "--reserve sram: expected REGION=BYTES"),
    (("--target", "rp2040", "--reserve", "sram=8K@middle"), 2, "expected REGION=BYTES"),
    (("--target", "rp2040", "--reserve", "sram=many"), 2, "cannot read 'many' as bytes"),
    (("--target", "rp2040", "--reserve", "sram=1MiB"), 2, "cannot be reserved"),
    (("--target", "rp2040", "--define", "A=B"), 2, "--define A=B: B is a name, expected a number"),
    (("--target", "rp2040", "--define", "3=4"), 2, "expected NAME=VALUE"),
    (("--target", "rp2040", "--used", "{0}/text.ld"), 3, "neither an ELF file nor a map"),
    (("--target", "rp2040", "--used", "{0}/none.elf"), 3, "none.elf: No such file"),
    (("--target", "rp2040", "--arena-symbol", "a"), 2, "--arena-symbol names a symbol in the program of --used"),
    (("--budget", "1MiB", "--reserve", "sram=1"), 2, "--reserve says more about a target; name one by --target"),
    ((), 2, "--budget BYTES or --target NAME has to say"),
]


@pytest.fixture
def wrong(tmp_path: Path, model: Path) -> Path:
    (tmp_path / "model.ld").write_bytes(model.read_bytes())
    (tmp_path / "text.ld").write_text("once upon a time")
    region = "RAM (rwx) : ORIGIN = 0, LENGTH = "
    (tmp_path / "twice.ld").write_text(f"MEMORY {{\n{region}8\n{region}8\n}}")
    (tmp_path / "zero.ld").write_text(f"MEMORY {{ {region}0 }}")
    (tmp_path / "negative.ld").write_text(f"MEMORY {{ {region}1K - 2K }}")
    return tmp_path


@pytest.mark.parametrize(("words", "code", "said"), WRONG)
def test_wrong_input_ends_with_its_code_and_names_the_place(
    wrong: Path, model: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    done = run("check", model, *(word.format(wrong) for word in words))
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_fit_needs_bytes_or_a_target(model: Path, tmp_path: Path) -> None:
    done = run("fit", model, "-o", tmp_path / "out.tflite")
    assert done.returncode == 2
    assert "--budget BYTES, --least or --target NAME" in done.stderr


def test_what_a_script_leaves_open_is_given_on_the_command_line(model: Path) -> None:
    script = f"from:{DATA / 'open_symbols.ld'}"
    done = run("check", model, "--target", script)
    assert "open_symbols.ld:3: region ram: _RAM_OFF is not defined; --define _RAM_OFF=VALUE" in done.stderr
    given = ("--define", "_RAM_OFF=0x20000000", "--define", "_RAM=64K")
    assert "64.00 KiB" in run("check", model, "--target", script, *given).stdout
    including = f"from:{DATA / 'include_in_memory.ld'}"
    assert "include_in_memory.ld:3: flash_region.ld is included" in run("check", model, "--target", including).stderr
    assert run("check", model, "--target", including, "--include", DATA / "beside").returncode == 0
