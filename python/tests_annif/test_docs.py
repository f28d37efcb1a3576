"""The commands of docs/annif.md, as a reader pastes them: in processes of their own, registered by the environment."""

import os
import pathlib
import re
import subprocess
import sys

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "annif.md"


def test_the_commands_of_the_document_work(tmp_path):
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    commands = [block for kind, block in blocks if kind == "sh" and not re.search("pip install|uvicorn", block)]
    (shown,) = (block for kind, block in blocks if kind == "text")
    env = os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    # Where a part of NLTK would be missed if it were needed.
    env["NLTK_DATA"] = str(tmp_path)
    script = "set -e\n" + "\n".join(commands)
    process = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    subjects = [line.split("\t")[1] for line in shown.splitlines()]
    assert re.findall(r"^<.*>\t(\w+)\t", process.stdout, re.MULTILINE) == subjects
    assert (tmp_path / "documents" / "1.annif").exists()
