"""The notebooks: each cell runs, at a short length, and nothing that ran is kept in the files."""

import json
from pathlib import Path
from typing import Any

import pytest

from labs import program
from racks import PATIENCE_S

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat: Any = pytest.importorskip("nbformat")
    nbclient: Any = pytest.importorskip("nbclient")
    pytest.importorskip("pandas")
    monkeypatch.setenv("SLUICE_TASKS", "2000")
    monkeypatch.setenv("SLUICE_REPLICATIONS", "2")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=PATIENCE_S, resources={"metadata": {"path": str(tmp_path)}}).execute()
    # Progress is shown in the cell of the first study, and ends with all runs.
    shown = [output for cell in book.cells for output in cell.get("outputs", ())]
    lines = [output["data"].get("text/plain", "") for output in shown if output["output_type"] == "display_data"]
    assert any(line.split(" of ")[0] == line.split(" of ")[1].split()[0] for line in lines if " of " in line), lines


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_has_no_outputs(path: Path) -> None:
    assert path.stat().st_size < 10_000
    code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert code and not any(cell["outputs"] or cell["execution_count"] for cell in code)


def test_the_three_notebooks_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["figure-6", "first-curve", "your-trace"]


def test_a_kernel_that_dies_leaves_what_was_done(tmp_path: Path) -> None:
    """A kernel is a process: what it kept before it died is there for the next one."""
    dies = """
import os, sys
from pathlib import Path
import labs, sluice
def die(progress):
    if progress.done >= 2:
        os._exit(9)
sluice.sweep(
    "rain:2", loads="0.3,0.6", tasks=int(sys.argv[2]), replications=4, threads=1, out=sys.argv[1], progress=die
)
"""
    again = """
import sys
import sluice
told = []
sluice.sweep(
    "rain:2", loads="0.3,0.6", tasks=int(sys.argv[2]), replications=4, out=sys.argv[1], progress=told.append
)
print(told[-1].runs)
print(told[-1])
"""
    # If the kernel's own thread does not run for a while, short replications are all done before it dies.
    for tasks in (100_000, 300_000, 1_000_000):
        folder = tmp_path / str(tasks)
        died = program(dies, folder, tasks)
        died.communicate(timeout=PATIENCE_S)
        assert died.returncode == 9
        out, said = program(again, folder, tasks).communicate(timeout=PATIENCE_S)
        runs, _, line = out.partition("\n")
        if runs != "0":
            break
    assert runs and 0 < int(runs) <= 6, said
    # The line says that what was done is still there.
    assert line.startswith(f"{runs} of {runs} runs beside {8 - int(runs)} that were kept"), line
