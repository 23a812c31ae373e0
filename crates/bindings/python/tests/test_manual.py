"""docs/manual/python.md: each program and each command of the page runs, and prints what the page says."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

from racks import PATIENCE_S, ROOT, SLUICE

PAGE = ROOT / "docs/manual/python.md"
#: Where the page's controller is.
CONTROLLER = "127.0.0.1:7400"
#: What a program of the page says that started before its service had registered, or on a machine too busy for it.
NOT_IN_TIME = ("no worker", "not registered with", "deadline passed")


def blocks() -> Iterator[Tuple[str, str]]:
    """The page's code: its language and its text."""
    yield from re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


class Typist:
    """Who types the page's commands, in a copy of the folders that they name, with a controller of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.background: List["subprocess.Popen[str]"] = []
        self.controller = ""
        (folder / "crates/bindings").mkdir(parents=True)
        (folder / "crates/bindings/python").symlink_to(ROOT / "crates/bindings/python")
        tools = folder / "tools"
        tools.mkdir()
        # A link would lead the interpreter away from its virtual environment.
        (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (tools / "python3").chmod(0o755)
        (tools / "sluice").symlink_to(SLUICE)
        self.environment: Dict[str, str] = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

    def type(self, line: str) -> None:
        """Runs a line of a shell's block, and holds what it prints against the comment behind it."""
        command, _, comment = line.partition("#")
        words = command.split()
        if words[0] == "pip":
            self.install(words[1:])
        elif words[:2] == ["sluice", "switch"]:
            words += ["--json", "--quiet", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--state", "state"]
            switch = self.start(words)
            assert switch.stdout is not None
            found = re.search(r'"control":"([^"]*)"', switch.stdout.readline())
            assert found, line
            self.controller = found[1]
        elif words[-1] == "&":
            self.start([*words[:-1], "--controller", self.controller, "--quiet"])
        elif words[:2] == ["sluice", "up"]:
            self.up(words)
        else:
            self.run([self.controller if word == CONTROLLER else word for word in words], comment)

    def install(self, words: List[str]) -> None:
        """Tries the installation if scripts/test-python --pip asks for it: it compiles everything anew."""
        assert words == ["install", "./crates/bindings/python"]
        venv = os.environ.get("SLUICE_PIP")
        if venv is None:
            return
        environment = {name: value for name, value in self.environment.items() if name != "PYTHONPATH"}
        pip = [f"{venv}/bin/pip", "-q", "--disable-pip-version-check", *words]
        subprocess.run(pip, cwd=ROOT, env=environment, check=True)
        code = "import sluice; print(sluice.__file__, sluice.Reply(b'x').bytes)"
        ran = subprocess.run(
            [f"{venv}/bin/python", "-c", code], env=environment, check=True, capture_output=True, text=True
        )
        assert venv in ran.stdout and "b'x'" in ran.stdout

    def start(self, words: List[str]) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        self.background.append(process)
        return process

    def run(self, words: List[str], comment: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while True:
            ran = subprocess.run(
                words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
            )
            is_late = ran.returncode != 0 and any(words in ran.stderr for words in NOT_IN_TIME)
            if not is_late or time.monotonic() > until:
                break
        assert ran.returncode == 0, f"{words}: {ran.stderr}"
        assert "; ".join(ran.stdout.splitlines()) == comment.strip(), words

    def up(self, words: List[str]) -> None:
        words += ["--length", "300ms", "--json", "--quiet"]
        ran = subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode in (0, 3, 5), ran.stderr
        tasks = json.loads(ran.stdout)["tasks"]
        assert tasks["replied"] == tasks["sent"] > 0, tasks

    def leave(self) -> None:
        for process in reversed(self.background):
            process.send_signal(signal.SIGKILL)
            process.communicate()


@pytest.fixture
def typist(tmp_path: Path) -> Iterator[Typist]:
    """A typist, whose background processes end with the test."""
    made = Typist(tmp_path)
    try:
        yield made
    finally:
        made.leave()


def test_each_program_and_command_of_the_page_runs(typist: Typist) -> None:
    programs = 0
    for language, text in blocks():
        if language == "python":
            name = text.splitlines()[0].removeprefix("# ")
            assert name.endswith(".py"), f"the first line of a program is its name: {text}"
            (typist.folder / name).write_text(text)
            programs += 1
        else:
            assert language == "sh"
            for line in text.splitlines():
                typist.type(line)
    assert programs >= 4


def test_the_examples_are_those_of_the_page_and_run(typist: Typist) -> None:
    folder = "crates/bindings/python/examples"
    typist.type(f"sluice switch {folder}/reverse.toml")
    typist.type(f"python3 {folder}/reverse_service.py &")
    typist.type(f"python3 {folder}/reverse_client.py {CONTROLLER} stressed live # desserts; evil")
    [service] = [text for _, text in blocks() if text.startswith("# service.py")]
    example = (typist.folder / folder / "reverse_service.py").read_text()
    assert service.split("import sluice")[1] == example.split("import sluice")[1]
