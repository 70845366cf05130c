"""Celery with the Queue service as its broker, through Kombu's azurestoragequeues transport."""

import threading
from collections import Counter

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from conftest import KEY

TASKS = 300


@pytest.fixture
def app(server):
    app = Celery("jobs", broker=f"azurestoragequeues://{KEY}@{server.endpoint('queue')}")
    # The transport has no broadcasts, which remote control needs; by default it asks once a second.
    app.conf.update(
        worker_enable_remote_control=False,
        broker_transport_options={"polling_interval": 0.01, "queue_name_prefix": "jobs-"},
        task_default_queue="celery",
    )
    yield app
    app.close()


def test_a_worker_does_every_task_once(app, server):
    done, all_done, lock = Counter(), threading.Event(), threading.Lock()

    @app.task(name="note")
    def note(number, text):
        assert text == "x" * number
        with lock:
            done[number] += 1
            if len(done) == TASKS:
                all_done.set()

    for number in range(TASKS):
        note.delay(number, "x" * number)
    with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False, loglevel="error"):
        assert all_done.wait(120), f"{len(done)} of {TASKS} tasks were done"
    assert done == Counter(range(TASKS))
    with server.queues() as queues:
        assert queues.get_queue_client("jobs-celery").get_queue_properties().approximate_message_count == 0
        queues.delete_queue("jobs-celery")
