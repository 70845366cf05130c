"""Queues and messages, through the official SDK."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    CorsRule,
    QueueClient,
    QueueSasPermissions,
    generate_queue_sas,
)
from conftest import ACCOUNT, KEY


@pytest.fixture
def queues(server):
    with server.queues() as service:
        yield service


@pytest.fixture
def queue(queues):
    client = queues.create_queue(f"q{uuid.uuid4().hex}")
    yield client
    client.delete_queue()


def refused(status, code, call, *arguments, **options):
    with pytest.raises(HttpResponseError) as raised:
        call(*arguments, **options)
    assert (raised.value.status_code, raised.value.error_code) == (status, code)


def test_a_message_is_sent_received_updated_and_deleted(queue):
    sent = queue.send_message("one", visibility_timeout=0, time_to_live=-1)
    assert sent.expires_on.year == 9999 and sent.id and sent.pop_receipt
    assert queue.peek_messages()[0].content == "one"
    message = queue.receive_message(visibility_timeout=60)
    assert (message.id, message.content, message.dequeue_count) == (sent.id, "one", 1)
    assert queue.receive_message() is None
    updated = queue.update_message(message, content="two", visibility_timeout=0)
    assert updated.pop_receipt != message.pop_receipt
    refused(400, "PopReceiptMismatch", queue.delete_message, message)
    again = queue.receive_message()
    assert (again.content, again.dequeue_count) == ("two", 2)
    queue.delete_message(again)
    refused(404, "MessageNotFound", queue.delete_message, again)


@pytest.mark.parametrize("text", ["", "  ", " a\nb\t", "<&>\"'&amp;]]>", "\U0001f600 ü", "x" * 65_536, "&" * 65_536])
def test_a_text_comes_back_as_it_was_sent(queue, text):
    queue.send_message(text)
    assert queue.receive_message().content == text


def test_bytes_come_back_in_base64(server, queue):
    options = {"message_encode_policy": BinaryBase64EncodePolicy(), "message_decode_policy": BinaryBase64DecodePolicy()}
    with QueueClient.from_connection_string(server.connection_string, queue.queue_name, **options) as client:
        client.send_message(bytes(range(256)) * 192)
        assert client.receive_message().content == bytes(range(256)) * 192


def test_many_messages_are_received_page_by_page_each_once(queue):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: queue.send_message(str(number)), range(300)))
    assert queue.get_queue_properties().approximate_message_count == 300
    with ThreadPoolExecutor(4) as pool:
        received = pool.map(lambda _: list(queue.receive_messages(messages_per_page=32)), range(4))
    contents = [message.content for messages in received for message in messages]
    assert sorted(contents, key=int) == [str(number) for number in range(300)]
    queue.clear_messages()
    assert queue.get_queue_properties().approximate_message_count == 0


def test_queues_are_created_described_listed_and_deleted(queues):
    prefix = f"list{uuid.uuid4().hex[:8]}"
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in names:
        queues.create_queue(name, metadata={"Owner": name})
    refused(409, "QueueAlreadyExists", queues.create_queue, names[0], metadata={"other": "x"})
    # The service says 204 to this, and the SDK takes that for a refusal.
    refused(204, "QueueAlreadyExists", queues.create_queue, names[0], metadata={"Owner": names[0]})
    listed = list(queues.list_queues(name_starts_with=prefix, include_metadata=True, results_per_page=2))
    assert [queue.name for queue in listed] == names
    assert [queue.metadata for queue in listed] == [{"Owner": name} for name in names]
    client = queues.get_queue_client(names[0])
    client.set_queue_metadata({"camelCase": "1"})
    assert client.get_queue_properties().metadata == {"camelCase": "1"}
    for name in names:
        queues.delete_queue(name)
    assert list(queues.list_queues(name_starts_with=prefix)) == []
    with pytest.raises(ResourceNotFoundError):
        client.get_queue_properties()
    queues.create_queue(names[0])
    with pytest.raises(ResourceExistsError):
        queues.create_queue(names[0], metadata={"a": "1"})
    queues.delete_queue(names[0])


def test_a_signature_and_a_stored_policy_allow_what_they_say(server, queue):
    def client(**options):
        signature = generate_queue_sas(ACCOUNT, queue.queue_name, KEY, **options)
        return QueueClient(server.endpoint("queue"), queue.queue_name, credential=signature)

    tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
    with client(permission=QueueSasPermissions(add=True), expiry=tomorrow) as adder:
        adder.send_message("signed")
        refused(403, "AuthorizationPermissionMismatch", adder.receive_message)
        refused(403, "AuthorizationFailure", adder.clear_messages)
    policy = AccessPolicy(permission=QueueSasPermissions(process=True, update=True), expiry=tomorrow)
    queue.set_queue_access_policy({"workers": policy})
    assert queue.get_queue_access_policy()["workers"].permission == "up"
    with client(policy_id="workers") as worker:
        message = worker.receive_message()
        message = worker.update_message(message, visibility_timeout=10)
        refused(403, "AuthorizationPermissionMismatch", worker.peek_messages)
        worker.delete_message(message)
    queue.set_queue_access_policy({})
    with client(policy_id="workers") as worker:
        refused(403, "AuthenticationFailed", worker.receive_message)


def test_the_service_has_properties_of_its_own(queues):
    rule = CorsRule(["http://page.example"], ["GET"], max_age_in_seconds=60)
    queues.set_service_properties(cors=[rule])
    assert queues.get_service_properties()["cors"][0].allowed_origins == "http://page.example"
    queues.set_service_properties(cors=[])
    assert queues.get_service_properties()["cors"] == []


def test_messages_and_their_receipts_survive_a_crash(own_server):
    with own_server.queues() as service:
        queue = service.create_queue("jobs", metadata={"kept": "yes"})
        for number in range(20):
            queue.send_message(f"message {number}")
        held = [queue.receive_message(visibility_timeout=600) for _ in range(5)]
        queue.delete_message(held[0])
        own_server.restart()
        assert queue.get_queue_properties().metadata == {"kept": "yes"}
        assert queue.get_queue_properties().approximate_message_count == 19
        rest = [message.content for message in queue.receive_messages(messages_per_page=32)]
        assert rest == [f"message {number}" for number in range(5, 20)]
        queue.delete_message(held[1])
        queue.update_message(held[2], visibility_timeout=0)
        assert queue.receive_message().dequeue_count == 2
