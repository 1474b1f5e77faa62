"""The whole life of a secret through Microsoft's Python clients.

usage: key_vault.py VAULT_URL READER

The environment has AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE, AZURE_AUTHORITY_HOST and REQUESTS_CA_BUNDLE.
READER is the client id of an identity of the same subject that may only get secrets. The server must answer the first two
getSecret for `throttled` with 429 (Retry-After 1 s), and commit the first setSecret for `lost` without an answer.
"""

import os
import pathlib
import sys
import time
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.identity import ClientAssertionCredential, ClientSecretCredential, WorkloadIdentityCredential
from azure.keyvault.secrets import SecretClient

VAULT, READER = sys.argv[1:]
TENANT = os.environ["AZURE_TENANT_ID"]
AUTHORITY = os.environ["AZURE_AUTHORITY_HOST"]


def connect(credential, **options):
    # The challenge names vault.azure.net, which is not this vault's domain.
    return SecretClient(VAULT, credential, verify_challenge_resource=False, **options)


def assertion():
    return pathlib.Path(os.environ["AZURE_FEDERATED_TOKEN_FILE"]).read_text()


def asserted(client_id, tenant=TENANT):
    return ClientAssertionCredential(tenant, client_id, assertion, authority=AUTHORITY, disable_instance_discovery=True)


@contextmanager
def refused(kind, status, code, inner=None):
    try:
        yield
    except HttpResponseError as error:
        assert type(error) is kind, repr(error)
        assert error.status_code == status, error
        assert error.error.code == code, error
        found = (error.error.innererror or {}).get("code")
        assert found == inner, error
    else:
        raise AssertionError(f"{kind.__name__} was expected")


def versions(client):
    expires = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=1)
    first = client.set_secret("life", "first", content_type="application/json", tags={"generation": "1"}, expires_on=expires)
    assert first.value == "first" and first.name == "life" and len(first.properties.version) == 32, first
    properties = first.properties
    assert properties.content_type == "application/json" and properties.tags == {"generation": "1"}
    assert properties.enabled and properties.expires_on == expires and properties.not_before is None
    assert properties.created_on == properties.updated_on and properties.created_on.microsecond == 0
    assert properties.recovery_level == "Recoverable+Purgeable" and properties.recoverable_days == 90
    second = client.set_secret("life", "second")
    assert client.get_secret("life").properties.version == second.properties.version
    assert client.get_secret("life", properties.version).value == "first"
    listed = list(client.list_properties_of_secret_versions("life"))
    assert {item.version for item in listed} == {properties.version, second.properties.version}, listed
    with refused(ResourceNotFoundError, 404, "SecretNotFound"):
        client.get_secret("life", "0" * 32)
    with refused(HttpResponseError, 400, "BadParameter"):
        client.set_secret("life", "x" * 25601)
    with refused(HttpResponseError, 400, "BadParameter"):
        client.set_secret("a_b", "x")
    return properties.version, second.properties.version


def updates(client, first, second):
    updated = client.update_secret_properties("life", first, tags={"generation": "2"})
    assert updated.tags == {"generation": "2"} and updated.content_type == "application/json" and updated.version == first
    disabled = client.update_secret_properties("life", second, enabled=False)
    assert disabled.enabled is False
    with refused(HttpResponseError, 403, "Forbidden", "SecretDisabled"):
        client.get_secret("life")
    assert client.get_secret("life", first).properties.tags == {"generation": "2"}
    assert client.update_secret_properties("life", enabled=True).version == second
    assert client.get_secret("life").value == "second"


def lists(client):
    for number in range(5):
        client.set_secret(f"page-{number}", "x")
    pages = [[item.name for item in page] for page in client.list_properties_of_secrets(max_page_size=4).by_page()]
    assert pages == [["life", "page-0", "page-1", "page-2"], ["page-3", "page-4"]], pages
    for _ in range(25):
        client.set_secret("page-0", "x")
    assert len(list(client.list_properties_of_secret_versions("page-0"))) == 26


def deletion(client, second):
    # A result is what was answered at once; to wait is another step.
    deleting = client.begin_delete_secret("life", _polling_interval=0.1)
    deleting.wait()
    deleted = deleting.result()
    assert deleted.properties.version == second and deleted.recovery_id == f"{VAULT}/deletedsecrets/life", deleted
    assert deleted.scheduled_purge_date - deleted.deleted_date == timedelta(days=90)
    with refused(ResourceNotFoundError, 404, "SecretNotFound"):
        client.get_secret("life")
    with refused(ResourceExistsError, 409, "Conflict", "ObjectIsDeletedButRecoverable"):
        client.set_secret("life", "third")
    assert [item.name for item in client.list_deleted_secrets()] == ["life"]
    recovering = client.begin_recover_deleted_secret("life", _polling_interval=0.1)
    recovering.wait()
    assert recovering.result().version == second
    assert client.get_secret("life").value == "second"
    client.begin_delete_secret("life", _polling_interval=0.1).wait()
    assert client.get_deleted_secret("life").name == "life"
    client.purge_deleted_secret("life")
    with refused(ResourceNotFoundError, 404, "SecretNotFound"):
        client.get_deleted_secret("life")
    # A purge takes its time; nothing but a write shows when it is done.
    while True:
        try:
            assert client.set_secret("life", "anew").value == "anew"
            break
        except ResourceExistsError as error:
            assert error.error.innererror["code"] == "ObjectIsBeingDeleted", error
            time.sleep(0.1)
    assert len(list(client.list_properties_of_secret_versions("life"))) == 1


def faults(client, credential):
    for name in ["throttled", "lost"]:
        client.set_secret(name, "x")
    with refused(HttpResponseError, 429, "Throttled"):
        connect(credential, retry_total=0).get_secret("throttled")
    assert client.get_secret("throttled").value == "x"
    # The client does not know that the first of its two attempts was carried out.
    assert len(list(client.list_properties_of_secret_versions("lost"))) == 2


def identities():
    reader = connect(asserted(READER))
    assert reader.get_secret("life").value == "anew"
    with refused(HttpResponseError, 403, "Forbidden", "ForbiddenByRbac"):
        reader.set_secret("life", "x")
    guessed = ClientSecretCredential(TENANT, READER, "guessed", authority=AUTHORITY, disable_instance_discovery=True)
    for credential, code in [(guessed, "AADSTS7000215"), (asserted("nobody"), "AADSTS700016")]:
        try:
            connect(credential).get_secret("life")
            raise AssertionError(f"{code} was expected")
        except ClientAuthenticationError as error:
            assert code in error.message, error


def main():
    credential = WorkloadIdentityCredential(disable_instance_discovery=True)
    client = connect(credential)
    with refused(ResourceNotFoundError, 404, "SecretNotFound"):
        client.get_secret("life")
    first, second = versions(client)
    updates(client, first, second)
    lists(client)
    deletion(client, second)
    faults(client, credential)
    identities()


main()
