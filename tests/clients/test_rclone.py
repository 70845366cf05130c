"""rclone, as the distribution packages it, keeps a container in step with a tree of a few thousand files."""

import datetime
import os
import random
import shutil
import subprocess

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from conftest import ACCOUNT, KEY, ROOT

UNPACKED = ROOT / ".tools" / "rclone" / "usr" / "bin"
RCLONE = shutil.which("rclone", path=f"{os.environ.get('PATH', '')}:{UNPACKED}")
FOLDERS, FILES = 40, 60


@pytest.fixture
def rclone(server):
    """Runs it; `remote:` is the account."""
    if RCLONE is None:
        pytest.skip("NOT TESTED: rclone is not installed and could not be unpacked; `apt-get install rclone`")
    tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    everything = ResourceTypes(service=True, container=True, object=True)
    allowed = AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True)
    sas = generate_account_sas(ACCOUNT, KEY, everything, allowed, tomorrow)
    environment = os.environ | {
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_CONFIG_REMOTE_TYPE": "azureblob",
        "RCLONE_CONFIG_REMOTE_SAS_URL": f"http://127.0.0.1:{server.ports['blob']}/{ACCOUNT}?{sas}",
        "RCLONE_TRANSFERS": "16",
        "RCLONE_CHECKERS": "16",
        "RCLONE_RETRIES": "1",
    }

    def run(*arguments):
        command = [RCLONE, *map(str, arguments)]
        done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.fixture
def tree(tmp_path):
    """Names that need escaping, empty files, small ones, and one that goes up in blocks."""
    chance = random.Random(7)
    root = tmp_path / "tree"
    for folder in range(FOLDERS):
        path = root / f"folder {folder}" / f"ü{folder}"
        path.mkdir(parents=True)
        for file in range(FILES):
            (path / f"file {file} #?&%+.txt").write_bytes(chance.randbytes(chance.choice([0, 10, 1000, 5000])))
    (root / "large").write_bytes(chance.randbytes(20_000_000))
    return root


def test_a_tree_is_kept_in_step_both_ways(rclone, tree, tmp_path):
    rclone("sync", tree, "remote:rclone-tree")
    assert "0 differences found" in rclone("check", tree, "remote:rclone-tree")
    (tree / "large").write_bytes(b"no longer")
    shutil.rmtree(tree / "folder 0")
    (tree / "new").write_bytes(b"new")
    rclone("sync", tree, "remote:rclone-tree")
    assert "0 differences found" in rclone("check", "--download", tree, "remote:rclone-tree")
    back = tmp_path / "back"
    rclone("sync", "remote:rclone-tree", back)
    files = sorted(path.relative_to(tree) for path in tree.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(back) for path in back.rglob("*") if path.is_file())
    assert all((tree / file).read_bytes() == (back / file).read_bytes() for file in files)
    assert len(files) == (FOLDERS - 1) * FILES + 2
    rclone("purge", "remote:rclone-tree")
    assert "rclone-tree" not in rclone("lsf", "remote:")
