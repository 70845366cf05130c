"""Libraries that keep data sets in blobs: file systems over an account, and tables whose writers race for a commit."""

import concurrent.futures

import adlfs
import deltalake
import pyarrow
import pyarrow.dataset
import pyarrow.fs

from conftest import ACCOUNT, KEY

ROWS = 30_000
WRITERS, COMMITS = 6, 18


def test_pyarrow_takes_the_account_for_a_flat_one(server, container):
    authority = f"127.0.0.1:{server.ports['blob']}"
    files = pyarrow.fs.AzureFileSystem(
        ACCOUNT,
        account_key=KEY,
        blob_storage_authority=authority,
        dfs_storage_authority=authority,
        blob_storage_scheme="http",
        dfs_storage_scheme="http",
    )
    root = container.container_name
    files.create_dir(f"{root}/a/b", recursive=True)
    table = pyarrow.table({"n": range(ROWS), "part": [n % 3 for n in range(ROWS)]})
    pyarrow.dataset.write_dataset(table, f"{root}/set", filesystem=files, format="parquet", partitioning=["part"])
    read = pyarrow.dataset.dataset(f"{root}/set", filesystem=files, partitioning=["part"]).to_table()
    assert sorted(read["n"].to_pylist()) == list(range(ROWS))
    with files.open_output_stream(f"{root}/one") as stream:
        stream.write(b"abc")
    files.copy_file(f"{root}/one", f"{root}/two")
    assert files.get_file_info(f"{root}/two").size == 3
    assert files.get_file_info(f"{root}/three").type == pyarrow.fs.FileType.NotFound
    files.delete_dir_contents(root)
    assert [blob.name for blob in container.list_blobs()] == []


def test_writers_of_a_delta_table_race_and_none_is_lost(server, container):
    place = f"az://{container.container_name}/table"
    options = {
        "account_name": ACCOUNT,
        "account_key": KEY,
        "endpoint": server.endpoint("blob"),
        "allow_http": "true",
    }

    def append(number):
        deltalake.write_deltalake(place, pyarrow.table({"n": [number]}), mode="append", storage_options=options)

    append(0)
    with concurrent.futures.ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(append, range(1, COMMITS)))
    table = deltalake.DeltaTable(place, storage_options=options)
    assert sorted(table.to_pyarrow_table()["n"].to_pylist()) == list(range(COMMITS))
    table.optimize.compact()
    table.create_checkpoint()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert deltalake.DeltaTable(place, storage_options=options).to_pyarrow_table().num_rows == COMMITS


def test_adlfs_works_on_blobs_as_on_files(server, container):
    files = adlfs.AzureBlobFileSystem(
        account_name=ACCOUNT, connection_string=server.connection_string, skip_instance_cache=True
    )
    root = container.container_name
    with files.open(f"{root}/a/large", "wb") as file:
        file.write(b"x" * 9_000_000)
    files.pipe(f"{root}/a/small", b"hello")
    assert files.info(f"{root}/a/large")["size"] == 9_000_000
    assert files.cat_file(f"{root}/a/small", 1, 3) == b"el"
    assert files.ls(f"{root}/a") == [f"{root}/a/large", f"{root}/a/small"]
    files.cp_file(f"{root}/a/small", f"{root}/b")
    assert files.glob(f"{root}/*") == [f"{root}/a", f"{root}/b"]
    files.rm(f"{root}/a", recursive=True)
    files.invalidate_cache()
    assert files.find(root) == [f"{root}/b"]
