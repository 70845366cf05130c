"""Encrypted endpoints, as the official SDKs reach them: by key, by a token, by what a token's holder signs."""

import datetime
import ipaddress

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient, generate_blob_sas
from azure.storage.queue import QueueServiceClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from conftest import ACCOUNT, KEY, Server
from test_access import ANN, Tokens, code, soon


def named(name):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def certificate(subject, key, issuer, signer, *extensions):
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(signer, hashes.SHA256())


class Authority:
    """Signs the server's certificate, which its clients trust by `path`."""

    def __init__(self, directory):
        self.directory = directory
        self.key = ec.generate_private_key(ec.SECP256R1())
        can_sign = (x509.BasicConstraints(ca=True, path_length=None), True)
        identifier = (x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
        usage = x509.KeyUsage(
            digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )
        self.own = certificate("authority", self.key, "authority", self.key, can_sign, identifier, (usage, True))
        self.path = str(directory / "authority.pem")
        (directory / "authority.pem").write_bytes(self.own.public_bytes(Encoding.PEM))

    def issue(self, key):
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return certificate(
            "server", key, "authority", self.key, (x509.SubjectAlternativeName(names), False), (authority, False)
        )

    def pem(self):
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        certificate_path, key_path = self.directory / "cert.pem", self.directory / "key.pem"
        certificate_path.write_bytes(self.issue(key).public_bytes(Encoding.PEM))
        key_path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
        return ["--cert", certificate_path, "--key", key_path]

    def pfx(self):
        key = ec.generate_private_key(ec.SECP256R1())
        locked = BestAvailableEncryption(b"secret")
        path = self.directory / "cert.pfx"
        content = pkcs12.serialize_key_and_certificates(b"server", key, self.issue(key), [self.own], locked)
        path.write_bytes(content)
        return ["--cert", path, "--pwd", "secret"]


@pytest.fixture(params=["pem", "pfx"])
def secured(request, tmp_path):
    authority = Authority(tmp_path)
    server = Server(tmp_path / "data", "--oauth", "basic", *getattr(authority, request.param)()).start()
    yield server, authority
    assert server.stop() == 0


def test_the_sdk_works_over_https(secured):
    server, authority = secured
    assert server.scheme == "https"
    with server.client(connection_verify=authority.path) as service:
        container = service.create_container("photos")
        blob = container.upload_blob("a b.jpg", b"x" * 5_000_000, metadata={"Owner": "ann"})
        assert blob.download_blob().readall() == b"x" * 5_000_000
        assert blob.get_blob_properties().metadata == {"Owner": "ann"}
        copy = container.get_blob_client("copy")
        copy.upload_blob_from_url(blob.url, overwrite=True)
        assert copy.get_blob_properties().size == 5_000_000
        strict = generate_blob_sas(
            ACCOUNT, "photos", "copy", account_key=KEY, permission="r", expiry=soon(), protocol="https"
        )
    guest = BlobClient.from_blob_url(f"{copy.url}?{strict}", connection_verify=authority.path)
    assert guest.get_blob_properties().size == 5_000_000
    plain = BlobClient.from_blob_url(f"{copy.url}?{strict}".replace("https://", "http://", 1))
    with pytest.raises(HttpResponseError) as error:
        plain.get_blob_properties()
    assert code(error) == "AccountRequiresHttps"
    with server.queues(connection_verify=authority.path) as queues:
        queue = queues.create_queue("jobs")
        queue.send_message("one")
        assert [message.content for message in queue.receive_messages()] == ["one"]
    with server.tables(connection_verify=authority.path) as tables:
        table = tables.create_table("people")
        table.create_entity({"PartitionKey": "a", "RowKey": "b", "age": 7})
        assert [entity["age"] for entity in table.list_entities()] == [7]


def test_a_token_credential_works_over_https(secured):
    server, authority = secured
    options = {"credential": Tokens(), "connection_verify": authority.path}
    with BlobServiceClient(server.endpoint("blob"), **options) as owner:
        blob = owner.create_container("photos").upload_blob("a.jpg", b"one")
        key = owner.get_user_delegation_key(soon(-1), soon())
        assert key.signed_oid == ANN
        sas = generate_blob_sas(
            ACCOUNT, "photos", "a.jpg", user_delegation_key=key, permission="r", expiry=soon(), protocol="https"
        )
        guest = BlobClient.from_blob_url(f"{blob.url}?{sas}", connection_verify=authority.path)
        assert guest.download_blob().readall() == b"one"
    with QueueServiceClient(server.endpoint("queue"), **options) as queues:
        queues.create_queue("jobs").send_message("one")
    with TableServiceClient(server.endpoint("table"), **options) as tables:
        table = tables.create_table("people")
        table.submit_transaction([("create", {"PartitionKey": "a", "RowKey": "b", "age": 7})])
        assert [entity["age"] for entity in table.list_entities()] == [7]
