"""docs/manual/python-lab.md: each program of the page runs, and prints what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List, Tuple

import pytest

from labs import PLAN
from racks import ROOT, SLUICE

pytest.importorskip("pandas", reason="pandas is not for this Python")

PAGE = ROOT / "docs/manual/python-lab.md"
#: Tools of clusters, which are not typed here: tests/slurm.rs runs the script's tasks, test_ray.py starts a Ray.
CLUSTERS = ("pip ", "ray ", "sbatch ")
#: The page's commands that need a Ray.
ON_RAY = ("python3 spread.py",)


class Page:
    """The page's programs in a folder, and a shell there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: What is to be typed, and a part of what it prints.
        self.commands: List[Tuple[str, str]] = []
        self.programs: List[str] = []
        tools = folder / "tools"
        tools.mkdir()
        # A link would lead the interpreter away from its virtual environment.
        (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (tools / "python3").chmod(0o755)
        (tools / "sluice").symlink_to(SLUICE)
        self._environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        for language, text in re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
            if language == "python":
                name = text.splitlines()[0].removeprefix("# ")
                assert name.endswith(".py"), f"the first line of a program is its name: {text}"
                (folder / name).write_text(text)
                self.programs.append(name)
            else:
                assert language == "sh"
                lines = (line.partition("    #") for line in text.splitlines())
                self.commands += [(command, comment.strip()) for command, _, comment in lines]

    def type(self, command: str, comment: str, **environment: str) -> str:
        """Runs a command, which prints what is in its comment."""
        words = ["bash", "-c", command]
        ran = subprocess.run(
            words,
            cwd=self.folder,
            env={**self._environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{command}: {ran.stderr}"
        assert comment in ran.stdout, (command, ran.stdout)
        return ran.stdout


def test_each_program_and_command_of_the_page_runs(tmp_path: Path) -> None:
    page = Page(tmp_path)
    assert page.programs == ["curve.py", "spread.py", "all.py"]
    typed = [(command, comment) for command, comment in page.commands if not command.startswith((*CLUSTERS, *ON_RAY))]
    assert len(typed) >= 8, typed
    for command, comment in typed:
        page.type(command, comment)


def test_the_pages_programs_run_on_ray(tmp_path: Path, cluster: str) -> None:
    page = Page(tmp_path)
    typed = [(command, comment) for command, comment in page.commands if command.startswith(ON_RAY)]
    assert len(typed) == len(ON_RAY)
    for command, comment in typed:
        page.type(command, comment, RAY_ADDRESS=cluster)
    # All figures would take hours: a plan stands for them.
    (tmp_path / "mine.toml").write_text(PLAN)
    page.type("python3 all.py mine.toml", "mine.toml {", RAY_ADDRESS=cluster)
