"""The whole life of a secret through Google's Python client.

usage: secret_manager.py ADDRESS grpc|rest

The server must deny secretmanager.secrets.setIamPolicy, answer the first deleteSecret with UNAVAILABLE (retry after 3 s), and
drop the connection of the second getVersion.
"""

import sys
from contextlib import contextmanager

import grpc
import requests
from google.api_core import exceptions, retry
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import secretmanager_v1 as sm
from google.cloud.secretmanager_v1.services.secret_manager_service.transports import SecretManagerServiceGrpcTransport
from google.protobuf import duration_pb2, field_mask_pb2

PARENT = "projects/fleet-dev"
HELLO_CRC32C = 2591144780
State = sm.SecretVersion.State
ADDRESS, TRANSPORT = sys.argv[1:]


def connect():
    if TRANSPORT == "grpc":
        channel = grpc.insecure_channel(ADDRESS)
        return sm.SecretManagerServiceClient(transport=SecretManagerServiceGrpcTransport(channel=channel))
    options = ClientOptions(api_endpoint=f"http://{ADDRESS}")
    return sm.SecretManagerServiceClient(transport="rest", credentials=AnonymousCredentials(), client_options=options)


@contextmanager
def refused(kind, text):
    # The REST transport knows an error by its HTTP status only.
    expected = kind if TRANSPORT == "grpc" else type(exceptions.from_http_status(kind.code, ""))
    try:
        yield
    except exceptions.GoogleAPICallError as error:
        assert type(error) is expected, repr(error)
        assert text in error.message, error.message
    else:
        raise AssertionError(f"{expected.__name__} was expected")


def secret(**fields):
    return sm.Secret(replication=sm.Replication(automatic=sm.Replication.Automatic()), **fields)


def create(client, name, **fields):
    return client.create_secret(parent=PARENT, secret_id=name, secret=secret(**fields))


def update(client, fields, *paths):
    return client.update_secret(secret=fields, update_mask=field_mask_pb2.FieldMask(paths=paths))


def versions(client, created):
    payload = sm.SecretPayload(data=b"hello", data_crc32c=HELLO_CRC32C)
    first = client.add_secret_version(parent=created.name, payload=payload)
    assert first.name == f"{created.name}/versions/1" and first.state == State.ENABLED, first
    assert first.client_specified_payload_checksum and "automatic" in first.replication_status
    second = client.add_secret_version(parent=f"{PARENT}/secrets/life", payload=sm.SecretPayload(data=b"\xff\x00world"))
    assert not second.client_specified_payload_checksum
    accessed = client.access_secret_version(name=first.name)
    assert accessed.payload.data == b"hello" and accessed.payload.data_crc32c == HELLO_CRC32C, accessed
    latest = client.access_secret_version(name=f"{PARENT}/secrets/life/versions/latest")
    assert latest.name == second.name and latest.payload.data == b"\xff\x00world"
    wrong = sm.SecretPayload(data=b"hello", data_crc32c=1)
    with refused(exceptions.InvalidArgument, "checksum"):
        client.add_secret_version(parent=created.name, payload=wrong)
    with refused(exceptions.InvalidArgument, "larger than the limit"):
        client.add_secret_version(parent=created.name, payload=sm.SecretPayload(data=b"x" * 65537))
    with refused(exceptions.NotFound, f"Secret Version [{created.name}/versions/3] not found."):
        client.access_secret_version(name=f"{created.name}/versions/3")
    return first, second


def states(client, first, second):
    disabled = client.disable_secret_version(request={"name": first.name, "etag": first.etag})
    assert disabled.state == State.DISABLED and disabled.etag != first.etag
    with refused(exceptions.FailedPrecondition, "etag"):
        client.enable_secret_version(request={"name": first.name, "etag": first.etag})
    with refused(exceptions.FailedPrecondition, "is in DISABLED state."):
        client.access_secret_version(name=first.name)
    assert client.enable_secret_version(name=first.name).state == State.ENABLED
    destroyed = client.destroy_secret_version(name=first.name)
    assert destroyed.state == State.DESTROYED and destroyed.destroy_time
    with refused(exceptions.FailedPrecondition, "is in DESTROYED state."):
        client.access_secret_version(name=first.name)
    assert client.get_secret_version(name=first.name).state == State.DESTROYED
    parent = f"{PARENT}/secrets/life"
    listed = list(client.list_secret_versions(request={"parent": parent, "page_size": 1}))
    assert [version.name for version in listed] == [second.name, first.name], listed
    enabled = list(client.list_secret_versions(request={"parent": parent, "filter": "state:ENABLED"}))
    assert [version.name for version in enabled] == [second.name]


def updates(client, created):
    changed = {"name": created.name, "etag": created.etag, "annotations": {"hyperfleet-generation": "7"}, "version_aliases": {"blue": 2}}
    updated = update(client, changed, "annotations", "version_aliases")
    assert dict(updated.annotations) == {"hyperfleet-generation": "7"} and dict(updated.version_aliases) == {"blue": 2}
    assert dict(updated.labels) == {"managed-by": "hyperfleet"} and updated.etag != created.etag
    assert client.access_secret_version(name=f"{created.name}/versions/blue").payload.data == b"\xff\x00world"
    with refused(exceptions.FailedPrecondition, "etag"):
        update(client, changed, "annotations")
    with refused(exceptions.InvalidArgument, "Label key [Team]"):
        update(client, {"name": created.name, "labels": {"Team": "x"}}, "labels")
    delayed = update(client, {"name": created.name, "version_destroy_ttl": duration_pb2.Duration(seconds=86400)}, "version_destroy_ttl")
    assert delayed.version_destroy_ttl.days == 1
    scheduled = client.destroy_secret_version(name=f"{created.name}/versions/2")
    assert scheduled.state == State.DISABLED and scheduled.scheduled_destroy_time
    assert client.get_secret(name=created.name).etag == delayed.etag


def lists(client):
    for number in range(5):
        create(client, f"page-{number}", labels={"managed-by": "other"})
    pages = list(client.list_secrets(request={"parent": PARENT, "page_size": 2}).pages)
    assert [len(page.secrets) for page in pages] == [2, 2, 2] and pages[0].total_size == 6
    ours = list(client.list_secrets(request={"parent": PARENT, "filter": "labels.managed-by=hyperfleet"}))
    assert [item.name.rsplit("/", 1)[1] for item in ours] == ["life"]
    with refused(exceptions.InvalidArgument, "there is no field"):
        list(client.list_secrets(request={"parent": PARENT, "filter": "colour=red"}))


def permissions(client, created):
    asked = ["secretmanager.versions.access", "secretmanager.secrets.setIamPolicy"]
    granted = client.test_iam_permissions(request={"resource": created.name, "permissions": asked})
    assert list(granted.permissions) == asked[:1], granted
    missing = client.test_iam_permissions(request={"resource": f"{PARENT}/secrets/none", "permissions": asked})
    assert not missing.permissions
    try:
        client.set_iam_policy(request={"resource": created.name})
        raise AssertionError("Forbidden was expected")
    except exceptions.Forbidden as error:
        assert error.reason == "IAM_PERMISSION_DENIED" and error.domain == "iam.googleapis.com", error.details
        assert error.metadata["permission"] == "secretmanager.secrets.setIamPolicy"
    with refused(exceptions.MethodNotImplemented, "not implemented"):
        client.get_iam_policy(request={"resource": created.name})


def cut(client, created):
    broken = exceptions.ServiceUnavailable if TRANSPORT == "grpc" else requests.exceptions.ConnectionError
    name = f"{created.name}/versions/2"
    try:
        client.get_secret_version(name=name)
        raise AssertionError(f"{broken.__name__} was expected")
    except broken:
        pass
    # A channel may take one more call before it has noticed that its connection is gone.
    again = retry.Retry(predicate=retry.if_exception_type(broken), initial=0.05, timeout=20)
    assert client.get_secret_version(name=name, retry=again).name == name


def end(client, created):
    try:
        client.delete_secret(name=created.name)
        raise AssertionError("ServiceUnavailable was expected")
    except exceptions.ServiceUnavailable as error:
        (detail,) = error.details
        assert detail["retryDelay"] == "3s" if TRANSPORT == "rest" else detail.retry_delay.seconds == 3, detail
    with refused(exceptions.FailedPrecondition, "etag"):
        client.delete_secret(request={"name": created.name, "etag": created.etag})
    client.delete_secret(request={"name": created.name, "etag": client.get_secret(name=created.name).etag})
    with refused(exceptions.NotFound, f"Secret [{created.name}] not found."):
        client.get_secret(name=created.name)


def regional(client):
    parent = f"{PARENT}/locations/europe-west1"
    with refused(exceptions.InvalidArgument, "regional"):
        client.create_secret(parent=parent, secret_id="there", secret=secret())
    created = client.create_secret(parent=parent, secret_id="there", secret=sm.Secret())
    added = client.add_secret_version(parent=created.name, payload=sm.SecretPayload(data=b"there"))
    assert "/locations/europe-west1/secrets/there/versions/1" in added.name
    assert client.access_secret_version(name=f"{parent}/secrets/there/versions/latest").payload.data == b"there"


def main():
    client = connect()
    with refused(exceptions.NotFound, "not found"):
        client.get_secret(name=f"{PARENT}/secrets/life")
    created = create(client, "life", labels={"managed-by": "hyperfleet"}, ttl=duration_pb2.Duration(seconds=7200))
    assert created.name.split("/")[1].isdigit() and created.etag and created.create_time, created
    assert (created.expire_time - created.create_time).total_seconds() == 7200
    with refused(exceptions.AlreadyExists, "already exists"):
        create(client, "life")
    with refused(exceptions.InvalidArgument, "Secret ID [a.b]"):
        create(client, "a.b")
    states(client, *versions(client, created))
    updates(client, created)
    lists(client)
    permissions(client, created)
    cut(client, created)
    end(client, created)
    regional(client)


main()
