// The whole life of a secret through Google's Node client.
//
// usage: secret_manager.mjs ADDRESS grpc|rest NODE_MODULES
//
// The server must deny secretmanager.secrets.setIamPolicy and answer the first deleteSecret with UNAVAILABLE (retry after 3 s).

import assert from 'node:assert/strict';
import {createRequire} from 'node:module';

const [address, transport, modules] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const {SecretManagerServiceClient} = require('@google-cloud/secret-manager');
const {GoogleAuth, PassThroughClient} = require('google-auth-library');
const grpc = require('@grpc/grpc-js');

const parent = 'projects/fleet-dev';
const helloCrc32c = '2591144780';
const code = {invalid: 3, notFound: 5, exists: 6, denied: 7, precondition: 9, unimplemented: 12, unavailable: 14};
const http = {3: 400, 5: 404, 6: 409, 7: 403, 9: 400, 12: 501, 14: 503};
const [host, port] = address.split(':');

function connect() {
  if (transport === 'grpc') {
    return new SecretManagerServiceClient({apiEndpoint: host, port: Number(port), sslCreds: grpc.credentials.createInsecure()});
  }
  const auth = new GoogleAuth({authClient: new PassThroughClient()});
  return new SecretManagerServiceClient({fallback: true, protocol: 'http', apiEndpoint: host, port: Number(port), projectId: 'fleet-dev', auth});
}

async function refused(call, expected, text) {
  const error = await call.then(() => assert.fail(`code ${expected} was expected`), error => error);
  // The REST transport hands on what its HTTP library threw, code and all.
  assert.equal(Number(error.code), transport === 'grpc' ? expected : http[expected], String(error.stack));
  assert.ok(error.message.includes(text), error.message);
  return error;
}

// What the first typed detail of an error says.
function details(error) {
  if (transport === 'grpc') {
    return {reason: error.reason, metadata: error.errorInfoMetadata, retry: error.statusDetails?.[0]?.retryDelay?.seconds};
  }
  // There the message is the error document as it came.
  const [detail] = JSON.parse(error.message.slice(error.message.indexOf('{'))).error.details;
  return {reason: detail.reason, metadata: detail.metadata, retry: parseInt(detail.retryDelay)};
}

const client = connect();
const automatic = {replication: {automatic: {}}};
const create = (secretId, fields = {}) => client.createSecret({parent, secretId, secret: {...automatic, ...fields}});
const update = (secret, ...paths) => client.updateSecret({secret, updateMask: {paths}});
const text = accessed => Buffer.from(accessed.payload.data).toString();

async function versions(name) {
  const [first] = await client.addSecretVersion({parent: name, payload: {data: Buffer.from('hello'), dataCrc32c: helloCrc32c}});
  assert.equal(first.name, `${name}/versions/1`);
  assert.equal(first.state, 'ENABLED');
  assert.equal(first.clientSpecifiedPayloadChecksum, true);
  const [second] = await client.addSecretVersion({parent: name, payload: {data: Buffer.from('world')}});
  const [accessed] = await client.accessSecretVersion({name: first.name});
  assert.equal(text(accessed), 'hello');
  assert.equal(String(accessed.payload.dataCrc32c), helloCrc32c);
  const [latest] = await client.accessSecretVersion({name: `${parent}/secrets/life/versions/latest`});
  assert.equal(latest.name, second.name);
  await refused(client.addSecretVersion({parent: name, payload: {data: Buffer.from('hello'), dataCrc32c: 1}}), code.invalid, 'checksum');
  await refused(client.accessSecretVersion({name: `${name}/versions/3`}), code.notFound, 'versions/3] not found.');
  return [first, second];
}

async function states(first, second) {
  const [disabled] = await client.disableSecretVersion({name: first.name, etag: first.etag});
  assert.equal(disabled.state, 'DISABLED');
  await refused(client.enableSecretVersion({name: first.name, etag: first.etag}), code.precondition, 'etag');
  await refused(client.accessSecretVersion({name: first.name}), code.precondition, 'is in DISABLED state.');
  const [enabled] = await client.enableSecretVersion({name: first.name});
  assert.equal(enabled.state, 'ENABLED');
  const [destroyed] = await client.destroySecretVersion({name: first.name});
  assert.equal(destroyed.state, 'DESTROYED');
  assert.ok(destroyed.destroyTime);
  await refused(client.accessSecretVersion({name: first.name}), code.precondition, 'is in DESTROYED state.');
  const names = async request => (await client.listSecretVersions({parent: `${parent}/secrets/life`, ...request}))[0].map(version => version.name);
  assert.deepEqual(await names({}), [second.name, first.name]);
  assert.deepEqual(await names({filter: 'state:ENABLED'}), [second.name]);
}

async function updates(created) {
  const {name, etag} = created;
  const changed = {name, etag, annotations: {'hyperfleet-generation': '7'}, versionAliases: {blue: 2}};
  const [updated] = await update(changed, 'annotations', 'version_aliases');
  assert.deepEqual(updated.annotations, {'hyperfleet-generation': '7'});
  assert.deepEqual(updated.labels, {'managed-by': 'hyperfleet'});
  assert.equal(String(updated.versionAliases.blue), '2');
  const [blue] = await client.accessSecretVersion({name: `${name}/versions/blue`});
  assert.equal(text(blue), 'world');
  await refused(update(changed, 'annotations'), code.precondition, 'etag');
  await refused(update({name, labels: {Team: 'x'}}, 'labels'), code.invalid, 'Label key [Team]');
}

async function lists() {
  for (let number = 0; number < 5; number += 1) await create(`page-${number}`, {labels: {'managed-by': 'other'}});
  const [page, next, answer] = await client.listSecrets({parent, pageSize: 2}, {autoPaginate: false});
  assert.equal(page.length, 2);
  assert.ok(next.pageToken);
  assert.equal(answer.totalSize, 6);
  const [all] = await client.listSecrets({parent});
  assert.equal(all.length, 6);
  const [ours] = await client.listSecrets({parent, filter: 'labels.managed-by=hyperfleet'});
  assert.deepEqual(ours.map(secret => secret.name.split('/').pop()), ['life']);
  await refused(client.listSecrets({parent, filter: 'colour=red'}), code.invalid, 'there is no field');
}

async function permissions(name) {
  const asked = ['secretmanager.versions.access', 'secretmanager.secrets.setIamPolicy'];
  const [granted] = await client.testIamPermissions({resource: name, permissions: asked});
  assert.deepEqual(granted.permissions, asked.slice(0, 1));
  const [missing] = await client.testIamPermissions({resource: `${parent}/secrets/none`, permissions: asked});
  assert.deepEqual(missing.permissions ?? [], []);
  const error = await refused(client.setIamPolicy({resource: name, policy: {}}), code.denied, 'denied for resource');
  const {reason, metadata} = details(error);
  assert.equal(reason, 'IAM_PERMISSION_DENIED');
  assert.equal(metadata.permission, 'secretmanager.secrets.setIamPolicy');
  await refused(client.getIamPolicy({resource: name}), code.unimplemented, 'not implemented');
}

async function end(created) {
  const error = await refused(client.deleteSecret({name: created.name}), code.unavailable, 'Scripted fault');
  assert.equal(Number(details(error).retry), 3);
  await refused(client.deleteSecret({name: created.name, etag: created.etag}), code.precondition, 'etag');
  const [current] = await client.getSecret({name: created.name});
  await client.deleteSecret({name: created.name, etag: current.etag});
  await refused(client.getSecret({name: created.name}), code.notFound, `Secret [${created.name}] not found.`);
}

async function regional() {
  const there = `${parent}/locations/europe-west1`;
  await refused(client.createSecret({parent: there, secretId: 'there', secret: automatic}), code.invalid, 'regional');
  const [created] = await client.createSecret({parent: there, secretId: 'there', secret: {}});
  await client.addSecretVersion({parent: created.name, payload: {data: Buffer.from('there')}});
  const [accessed] = await client.accessSecretVersion({name: `${there}/secrets/there/versions/latest`});
  assert.equal(text(accessed), 'there');
}

await refused(client.getSecret({name: `${parent}/secrets/life`}), code.notFound, 'not found');
const [created] = await create('life', {labels: {'managed-by': 'hyperfleet'}, ttl: {seconds: 7200}});
assert.match(created.name, /^projects\/[0-9]+\/secrets\/life$/);
assert.equal(Number(created.expireTime.seconds) - Number(created.createTime.seconds), 7200);
await refused(create('life'), code.exists, 'already exists');
await refused(create('a.b'), code.invalid, 'Secret ID [a.b]');
await states(...(await versions(created.name)));
await updates(created);
await lists();
await permissions(created.name);
await end(created);
await regional();
await client.close();
