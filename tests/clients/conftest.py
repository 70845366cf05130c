"""A real lazuli, as its users start it, on free ports and a data directory of its own."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import uuid

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ROOT = pathlib.Path(__file__).resolve().parents[2]
READY = re.compile(r"(Blob|Queue|Table) service is successfully listening at (https?)://127\.0\.0\.1:(\d+)")
ALL_READY = "Table service is successfully listening"


class Server:
    """The process. It can be killed and started again on the same data."""

    def __init__(self, location, *options):
        self.location = str(location)
        self.options = [str(option) for option in options]
        self.process = None
        self.scheme = "http"
        self.ports = {"blob": 0, "queue": 0, "table": 0}

    def start(self):
        binary = os.environ.get("LAZULI_BIN") or str(ROOT / "target" / "release" / "lazuli")
        command = [binary, "--location", self.location, "--silent", *self.options]
        for service, port in self.ports.items():
            command += [f"--{service}Port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
        for line in self.process.stdout:
            if found := READY.search(line):
                self.ports[found.group(1).lower()] = int(found.group(3))
                self.scheme = found.group(2)
            if ALL_READY in line:
                return self
        raise RuntimeError(f"lazuli ended with {self.process.wait()} before it was ready")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.terminate()
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        return status

    def restart(self):
        self.kill()
        return self.start()

    def endpoint(self, service):
        return f"{self.scheme}://127.0.0.1:{self.ports[service]}/{ACCOUNT}"

    @property
    def connection_string(self):
        return (
            f"DefaultEndpointsProtocol={self.scheme};AccountName={ACCOUNT};AccountKey={KEY};"
            f"BlobEndpoint={self.endpoint('blob')};QueueEndpoint={self.endpoint('queue')};"
            f"TableEndpoint={self.endpoint('table')};"
        )

    def client(self, **options):
        return BlobServiceClient.from_connection_string(self.connection_string, **options)

    def queues(self, **options):
        return QueueServiceClient.from_connection_string(self.connection_string, **options)

    def tables(self, **options):
        return TableServiceClient.from_connection_string(self.connection_string, **options)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("lazuli")).start()
    yield server
    assert server.stop() == 0


@pytest.fixture
def own_server(tmp_path):
    """A server for one test, which may kill it."""
    server = Server(tmp_path / "data").start()
    yield server
    server.kill()


@pytest.fixture
def service(server):
    with server.client() as client:
        yield client


@pytest.fixture
def container(service):
    client = service.create_container(f"c{uuid.uuid4().hex}")
    yield client
    client.delete_container()
