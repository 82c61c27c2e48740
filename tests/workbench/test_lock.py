"""One process a folder at a time."""

import shutil
import signal
import subprocess
import sys

import pytest

from workbench.errors import BadInput
from workbench.lock import LOCK, hold

HOLDER = """
import sys, time
from pathlib import Path
from workbench.lock import hold
with hold(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_is_held_once_and_the_lock_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "new"
    with hold(folder, "busy"):
        assert (folder / LOCK).exists()
        with pytest.raises(BadInput, match="new: it is taken; wait"), hold(folder, "it is taken; wait", patience=0):
            pytest.fail("held twice")
    assert list(folder.iterdir()) == []


def test_a_killed_holder_is_no_obstacle(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(BadInput, match="busy"), hold(tmp_path, "busy", patience=0):
        pytest.fail("held twice")
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert (tmp_path / LOCK).exists()
    with hold(tmp_path, "busy", patience=5):
        pass


def test_a_folder_may_disappear_while_it_is_held(tmp_path):
    with hold(tmp_path / "gone", "busy"):
        shutil.rmtree(tmp_path / "gone")
    with hold(tmp_path / "gone", "busy", patience=0):
        assert (tmp_path / "gone" / LOCK).exists()
