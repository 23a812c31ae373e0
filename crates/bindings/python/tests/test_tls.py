"""A rack with certificates: who shows none, or the wrong one, is told so."""

import shutil
import subprocess
from pathlib import Path
from typing import List

import pytest

import sluice
from racks import PATIENCE_S, PLAN, Rack

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


def openssl(folder: Path, words: List[str]) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def request(name: str) -> List[str]:
    """How to ask for a certificate with a new key."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]
    return ["req", *key, "-subj", f"/CN={name}"]


def make_authority(folder: Path, name: str) -> None:
    openssl(folder, [*request(name), "-x509", "-days", "2", "-out", f"{name}.pem"])


def make(folder: Path, name: str, of: str) -> None:
    """A certificate that `ca` signs, in a way that openssl 1.1 has too."""
    openssl(folder, [*request(name), "-out", f"{name}.csr"])
    (folder / f"{name}.ext").write_text(f"basicConstraints=CA:FALSE\nsubjectAltName={of}\n")
    signs = ["x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
    openssl(folder, [*signs, "-days", "2", "-out", f"{name}.pem", "-extfile", f"{name}.ext"])


def test_a_client_shows_its_certificate_and_believes_only_its_authority(tmp_path: Path) -> None:
    for name in ("ca", "other"):
        make_authority(tmp_path, name)
    make(tmp_path, "switch", "IP:127.0.0.1")
    make(tmp_path, "b", "URI:sluice:host/b")
    tls = ["--tls", "switch.pem", "switch.key", "--client-ca", "ca.pem"]
    ca, identity = tmp_path / "ca.pem", (tmp_path / "b.pem", str(tmp_path / "b.key"))
    with Rack(tmp_path, PLAN, workers=0, more=tls) as rack:
        shown = ["--ca", str(ca), "--identity", *map(str, identity), "--name", "b/one"]
        rack.start_worker(more=shown)
        with sluice.connect(rack.controller, ca=ca, identity=identity, patience=PATIENCE_S) as client:
            outcome: sluice.Outcome = sluice.Busy("")
            while not isinstance(outcome, sluice.Reply):
                [outcome] = client.submit_many("reverse", [b"live"])
            assert outcome.bytes == b"evil"
        for wrong in ({}, {"ca": tmp_path / "other.pem", "identity": identity}, {"ca": ca}):
            with pytest.raises(sluice.NotConnected):
                sluice.connect(rack.controller, patience=0.5, **wrong)
        with pytest.raises(sluice.NotConnected, match="name"):
            sluice.connect(rack.controller, ca=ca, identity=identity, name="c/one", patience=PATIENCE_S)
