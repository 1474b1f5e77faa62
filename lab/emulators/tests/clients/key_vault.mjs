// The whole life of a secret through Microsoft's Node clients.
//
// usage: key_vault.mjs VAULT_URL READER NODE_MODULES
//
// The environment has AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE, AZURE_AUTHORITY_HOST and NODE_EXTRA_CA_CERTS.
// READER and the server are as key_vault.py needs them.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';

const [vault, reader, modules] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const {SecretClient} = require('@azure/keyvault-secrets');
const {ClientAssertionCredential, ClientSecretCredential, WorkloadIdentityCredential} = require('@azure/identity');

const tenant = process.env.AZURE_TENANT_ID;
const options = {authorityHost: process.env.AZURE_AUTHORITY_HOST, disableInstanceDiscovery: true};
// The challenge names vault.azure.net, which is not this vault's domain.
const connect = (credential, more = {}) => new SecretClient(vault, credential, {disableChallengeResourceVerification: true, ...more});
const assertion = async () => readFileSync(process.env.AZURE_FEDERATED_TOKEN_FILE, 'utf8');
const asserted = id => new ClientAssertionCredential(tenant, id, assertion, options);

async function refused(call, status, code, inner) {
  const error = await call.then(() => assert.fail(`${code} was expected`), error => error);
  assert.equal(error.statusCode, status, String(error.stack));
  assert.equal(error.code, code);
  assert.equal(error.details.error.innerError?.code, inner);
}

async function all(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

const credential = new WorkloadIdentityCredential(options);
const client = connect(credential);

async function versions() {
  const expiresOn = new Date(1_900_000_000_000);
  const first = await client.setSecret('life', 'first', {contentType: 'application/json', tags: {generation: '1'}, expiresOn});
  assert.equal(first.value, 'first');
  const {properties} = first;
  assert.match(properties.version, /^[0-9a-f]{32}$/);
  assert.equal(properties.contentType, 'application/json');
  assert.deepEqual(properties.tags, {generation: '1'});
  assert.equal(properties.enabled, true);
  assert.deepEqual(properties.expiresOn, expiresOn);
  assert.equal(properties.createdOn.getTime() % 1000, 0);
  assert.equal(properties.recoveryLevel, 'Recoverable+Purgeable');
  assert.equal(properties.recoverableDays, 90);
  const second = await client.setSecret('life', 'second');
  assert.equal((await client.getSecret('life')).properties.version, second.properties.version);
  assert.equal((await client.getSecret('life', {version: properties.version})).value, 'first');
  const listed = (await all(client.listPropertiesOfSecretVersions('life'))).map(item => item.version);
  assert.deepEqual(listed.sort(), [properties.version, second.properties.version].sort());
  await refused(client.getSecret('life', {version: '0'.repeat(32)}), 404, 'SecretNotFound');
  await refused(client.setSecret('life', 'x'.repeat(25601)), 400, 'BadParameter');
  await refused(client.setSecret('a_b', 'x'), 400, 'BadParameter');
  return [properties.version, second.properties.version];
}

async function updates(first, second) {
  const updated = await client.updateSecretProperties('life', first, {tags: {generation: '2'}});
  assert.deepEqual(updated.tags, {generation: '2'});
  assert.equal(updated.contentType, 'application/json');
  const disabled = await client.updateSecretProperties('life', second, {enabled: false});
  assert.equal(disabled.enabled, false);
  await refused(client.getSecret('life'), 403, 'Forbidden', 'SecretDisabled');
  await client.updateSecretProperties('life', second, {enabled: true});
  assert.equal((await client.getSecret('life')).value, 'second');
}

async function lists() {
  for (let number = 0; number < 5; number += 1) await client.setSecret(`page-${number}`, 'x');
  const pages = await all(client.listPropertiesOfSecrets().byPage({maxPageSize: 4}));
  assert.deepEqual(pages.map(page => page.map(item => item.name)), [['life', 'page-0', 'page-1', 'page-2'], ['page-3', 'page-4']]);
  for (let number = 0; number < 25; number += 1) await client.setSecret('page-0', 'x');
  assert.equal((await all(client.listPropertiesOfSecretVersions('page-0'))).length, 26);
}

async function deletion(second) {
  const poll = {intervalInMs: 100};
  const deleted = await (await client.beginDeleteSecret('life', poll)).pollUntilDone();
  assert.equal(deleted.properties.version, second);
  assert.equal(deleted.properties.recoveryId, `${vault}/deletedsecrets/life`);
  await refused(client.getSecret('life'), 404, 'SecretNotFound');
  await refused(client.setSecret('life', 'third'), 409, 'Conflict', 'ObjectIsDeletedButRecoverable');
  assert.deepEqual((await all(client.listDeletedSecrets())).map(item => item.name), ['life']);
  const recovered = await (await client.beginRecoverDeletedSecret('life', poll)).pollUntilDone();
  assert.equal(recovered.version, second);
  assert.equal((await client.getSecret('life')).value, 'second');
  await (await client.beginDeleteSecret('life', poll)).pollUntilDone();
  await client.purgeDeletedSecret('life');
  await refused(client.getDeletedSecret('life'), 404, 'SecretNotFound');
}

async function faults() {
  for (const name of ['throttled', 'lost']) await client.setSecret(name, 'x');
  await refused(connect(credential, {retryOptions: {maxRetries: 0}}).getSecret('throttled'), 429, 'Throttled');
  assert.equal((await client.getSecret('throttled')).value, 'x');
  // The client does not know that the first of its two attempts was carried out.
  assert.equal((await all(client.listPropertiesOfSecretVersions('lost'))).length, 2);
}

async function identities() {
  const reading = connect(asserted(reader));
  assert.equal((await reading.getSecret('throttled')).value, 'x');
  await refused(reading.setSecret('throttled', 'y'), 403, 'Forbidden', 'ForbiddenByRbac');
  const guessed = new ClientSecretCredential(tenant, reader, 'guessed', options);
  for (const [wrong, code] of [[guessed, 'AADSTS7000215'], [asserted('nobody'), 'AADSTS700016']]) {
    await assert.rejects(connect(wrong).getSecret('throttled'), error => error.message.includes(code));
  }
}

await refused(client.getSecret('life'), 404, 'SecretNotFound');
const [first, second] = await versions();
await updates(first, second);
await lists();
await deletion(second);
await faults();
await identities();
