// Tables and entities, through the official SDK.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  TableClient,
  TableServiceClient,
  generateTableSas,
  odata,
} from "@azure/data-tables";

import { ACCOUNT, KEY, Server, all } from "./lazuli.js";

const OPTIONS = { allowInsecureConnection: true };
const CREDENTIAL = new AzureNamedKeyCredential(ACCOUNT, KEY);

let server, service;

before(async () => {
  server = await Server.start();
  service = new TableServiceClient(server.endpoints.table, CREDENTIAL, OPTIONS);
});
after(() => server.stop());

function client(name, credential = CREDENTIAL) {
  return new TableClient(server.endpoints.table, name, credential, OPTIONS);
}

async function table() {
  const name = `t${randomUUID().replaceAll("-", "")}`;
  await service.createTable(name);
  return client(name);
}

/// Waits for a refusal and checks its status and the code of its body.
async function refused(status, code, call) {
  await assert.rejects(call, (error) => {
    assert.deepEqual([error.statusCode, error.details?.odataError?.code ?? error.code], [status, code]);
    return true;
  });
}

function entity(rowKey, properties = {}, partitionKey = "p") {
  return { partitionKey, rowKey, ...properties };
}

test("an entity is created, updated and deleted by version", async () => {
  const people = await table();
  const created = await people.createEntity(entity("r", { a: 1, b: "x" }));
  const read = await people.getEntity("p", "r");
  assert.deepEqual([read.etag, read.a, read.b], [created.etag, 1, "x"]);
  await refused(409, "EntityAlreadyExists", () => people.createEntity(entity("r")));
  await people.updateEntity(entity("r", { b: "y" }), "Merge", { etag: created.etag });
  await refused(412, "UpdateConditionNotSatisfied", () =>
    people.updateEntity(entity("r", { c: 1 }), "Replace", { etag: created.etag }),
  );
  const merged = await people.getEntity("p", "r");
  assert.deepEqual([merged.a, merged.b], [1, "y"]);
  await people.upsertEntity(entity("r", { c: 1 }), "Replace");
  const selected = await people.getEntity("p", "r", { queryOptions: { select: ["c", "a"] } });
  assert.deepEqual([selected.c, selected.a, selected.rowKey], [1, undefined, undefined]);
  await people.deleteEntity("p", "r");
  await refused(404, "ResourceNotFound", () => people.getEntity("p", "r"));
  await refused(404, "ResourceNotFound", () => people.deleteEntity("p", "r"));
  await refused(404, "TableNotFound", () => client("Nobody").createEntity(entity("r")));
});

test("values of every type come back", async () => {
  const types = await table();
  const values = {
    text: "\u{1f600} ü\n\"'\\",
    yes: true,
    small: -5,
    fraction: 0.1,
    large: 9223372036854775807n,
    moment: new Date("2026-08-01T12:30:15.123Z"),
    bytes: new Uint8Array([0, 1, 255]),
    id: { type: "Guid", value: "00112233-4455-6677-8899-aabbccddeeff" },
  };
  const whole = { whole: { type: "Double", value: 5 }, number: { type: "Int32", value: 7 }, far: { type: "DateTime", value: "9999-12-31T23:59:59.9999999Z" } };
  await types.createEntity(entity("r", { ...values, ...whole, nothing: null }));
  const read = await types.getEntity("p", "r");
  for (const name of ["text", "yes", "small", "fraction", "large", "moment", "id"]) {
    assert.deepEqual(read[name], values[name], name);
  }
  assert.deepEqual([...read.bytes], [0, 1, 255]);
  assert.deepEqual([read.whole, read.number, "nothing" in read], [5, 7, false]);
  const exact = await types.getEntity("p", "r", { disableTypeConversion: true });
  assert.deepEqual(exact.far, { type: "DateTime", value: "9999-12-31T23:59:59.9999999Z" });
  assert.deepEqual(exact.large, { type: "Int64", value: "9223372036854775807" });
  // What was read so is written back as texts with their types.
  await types.updateEntity(exact, "Replace");
  const again = await types.getEntity("p", "r");
  for (const name of ["text", "yes", "small", "fraction", "large", "moment", "id"]) {
    assert.deepEqual(again[name], values[name], name);
  }
});

for (const key of ["", " ", "it's", "100%", "%27", "a,RowKey='b'", "(é)", "\u{1f600}", "a+b&c=d"]) {
  test(`a key may be <${key}>`, async () => {
    const keys = await table();
    await keys.createEntity(entity(key, { a: 1 }, key));
    assert.equal((await keys.getEntity(key, key)).a, 1);
    const filter = odata`PartitionKey eq ${key} and RowKey eq ${key}`;
    assert.deepEqual((await all(keys.listEntities({ queryOptions: { filter } }))).map((found) => found.rowKey), [key]);
    await keys.submitTransaction([["update", entity(key, { a: 2 }, key), "Merge"]]);
    assert.equal((await keys.getEntity(key, key)).a, 2);
    await keys.deleteEntity(key, key);
  });
}

test("queries are answered page by page", async () => {
  const numbers = await table();
  for (let start = 0; start < 1200; start += 100) {
    const rows = Array.from({ length: 100 }, (_, row) => `${start + row}`.padStart(5, "0"));
    await numbers.submitTransaction(rows.map((row) => ["create", entity(row, { n: Number(row) })]));
  }
  assert.equal((await all(numbers.listEntities())).length, 1200);
  const found = [];
  const options = { queryOptions: { filter: odata`n ge ${100} and n lt ${1100}`, select: ["n"] } };
  let token;
  for await (const page of numbers.listEntities(options).byPage({ maxPageSize: 300 })) {
    assert.ok(page.length <= 300);
    found.push(...page.map((one) => one.n));
    if (found.length === 300) token = page.continuationToken;
  }
  assert.deepEqual(found, Array.from({ length: 1000 }, (_, n) => n + 100));
  const rest = [];
  for await (const page of numbers.listEntities(options).byPage({ maxPageSize: 1000, continuationToken: token })) {
    rest.push(...page.map((one) => one.n));
  }
  assert.deepEqual(rest, found.slice(300));
});

test("filters compare by type", async () => {
  const types = await table();
  const id = "00112233-4455-6677-8899-aabbccddeeff";
  await types.createEntity(entity("1", { n: 5, l: 5n, s: "it's", b: true, t: new Date("2026-08-01T00:00:00Z") }));
  await types.createEntity(entity("2", { d: 5.5, g: { type: "Guid", value: id }, x: new Uint8Array([0, 255]), b: false }));
  const cases = [
    [odata`n eq ${5}`, "1"],
    [odata`l lt ${6n}`, "1"],
    [odata`s eq ${"it's"}`, "1"],
    [odata`b eq ${false}`, "2"],
    [odata`t eq ${new Date("2026-08-01T00:00:00Z")}`, "1"],
    [`g eq guid'${id}'`, "2"],
    ["x eq X'00ff'", "2"],
    ["d gt 5.4 or n eq 5", "12"],
    ["not (n eq 5)", "2"],
  ];
  for (const [filter, expected] of cases) {
    const found = await all(types.listEntities({ queryOptions: { filter } }));
    assert.equal(found.map((one) => one.rowKey).join(""), expected, filter);
  }
  await refused(400, "InvalidInput", () => all(types.listEntities({ queryOptions: { filter: "n eq" } })));
  await refused(501, "NotImplemented", () => all(types.listEntities({ queryOptions: { filter: "startswith(s,'i')" } })));
});

test("a transaction happens as a whole or not at all", async () => {
  const jobs = await table();
  await jobs.createEntity(entity("kept", { n: 1 }));
  const done = await jobs.submitTransaction([
    ["create", entity("new")],
    ["upsert", entity("kept", { n: 2 }), "Replace"],
    ["upsert", entity("other", { n: 3 }), "Merge"],
  ]);
  assert.deepEqual([done.status, done.subResponses.map((part) => part.status)], [202, [204, 204, 204]]);
  assert.equal(done.getResponseForEntity("new").etag, (await jobs.getEntity("p", "new")).etag);
  await assert.rejects(
    () => jobs.submitTransaction([["create", entity("x")], ["create", entity("new")]]),
    (error) => {
      assert.deepEqual([error.statusCode, error.code], [409, "EntityAlreadyExists"]);
      assert.match(error.message, /^1:/);
      return true;
    },
  );
  await refused(404, "ResourceNotFound", () => jobs.getEntity("p", "x"));
  const many = Array.from({ length: 101 }, (_, row) => ["create", entity(`${row}`)]);
  await refused(400, "InvalidInput", () => jobs.submitTransaction(many));
  await jobs.submitTransaction(many.slice(1));
  await jobs.submitTransaction([["delete", entity("100")]]);
});

test("tables are created, listed and deleted", async () => {
  const prefix = `L${randomUUID().slice(0, 8)}`;
  const names = ["a", "b", "c"].map((letter) => `${prefix}${letter}`);
  for (const name of names) await service.createTable(name);
  await service.createTable(names[0].toLowerCase());
  const listed = [];
  for await (const page of service.listTables().byPage({ maxPageSize: 1 })) {
    listed.push(...page.map((one) => one.name));
  }
  assert.deepEqual(listed.filter((name) => name.startsWith(prefix)), names);
  const filter = odata`TableName gt ${names[0]} and TableName le ${names[2]}`;
  assert.deepEqual((await all(service.listTables({ queryOptions: { filter } }))).map((one) => one.name), names.slice(1));
  for (const name of names) await service.deleteTable(name);
  await client(names[0]).deleteTable();
});

test("a signature and a stored policy allow what they say", async () => {
  const people = await table();
  await people.createEntity(entity("1", {}, "a"));
  await people.createEntity(entity("1", {}, "b"));
  const expiresOn = new Date(Date.now() + 3600_000);
  const signed = (options) =>
    client(people.tableName, new AzureSASCredential(generateTableSas(people.tableName, CREDENTIAL, options)));
  const reader = signed({ permissions: { query: true }, expiresOn, startPartitionKey: "b" });
  assert.deepEqual((await all(reader.listEntities())).map((one) => one.partitionKey), ["b"]);
  await refused(403, "AuthorizationFailure", () => reader.getEntity("a", "1"));
  await refused(403, "AuthorizationPermissionMismatch", () => reader.createEntity(entity("2", {}, "b")));
  await people.setAccessPolicy([{ id: "readers", accessPolicy: { permission: "r", expiry: expiresOn } }]);
  assert.equal((await people.getAccessPolicy())[0].id, "readers");
  const named = signed({ identifier: "readers" });
  assert.equal((await named.getEntity("a", "1")).rowKey, "1");
  await people.setAccessPolicy([]);
  await refused(403, "AuthenticationFailed", () => named.getEntity("a", "1"));
});

test("the service has properties of its own", async () => {
  const rule = { allowedOrigins: "http://page.example", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 60 };
  await service.setProperties({ cors: [rule] });
  assert.equal((await service.getProperties()).cors[0].allowedOrigins, "http://page.example");
});
