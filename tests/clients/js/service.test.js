// Service properties, statistics and account information, through the official JavaScript SDK.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";

import { ACCOUNT, KEY, Server, refused } from "./lazuli.js";

let server, service;

before(async () => {
  server = await Server.start();
  service = BlobServiceClient.fromConnectionString(server.connectionString);
});
after(() => server.stop());

test("properties that were read can be changed and written back", async () => {
  const { blobAnalyticsLogging, hourMetrics, minuteMetrics, cors, deleteRetentionPolicy, staticWebsite } =
    await service.getProperties();
  assert.deepEqual(cors ?? [], []);
  blobAnalyticsLogging.deleteProperty = true;
  blobAnalyticsLogging.retentionPolicy = { enabled: true, days: 4 };
  hourMetrics.enabled = true;
  hourMetrics.includeAPIs = true;
  deleteRetentionPolicy.enabled = true;
  deleteRetentionPolicy.days = 6;
  staticWebsite.enabled = true;
  staticWebsite.indexDocument = "index.html";
  staticWebsite.errorDocument404Path = "errors/404.html";
  const rules = [
    { allowedOrigins: "http://a.example", allowedMethods: "GET,PUT", allowedHeaders: "*", exposedHeaders: "", maxAgeInSeconds: 9 },
    { allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "etag", maxAgeInSeconds: 0 },
  ];
  await service.setProperties({
    blobAnalyticsLogging,
    hourMetrics,
    minuteMetrics,
    cors: rules,
    defaultServiceVersion: "2020-10-02",
    deleteRetentionPolicy,
    staticWebsite,
  });
  const read = await service.getProperties();
  assert.equal(read.blobAnalyticsLogging.deleteProperty, true);
  assert.equal(read.blobAnalyticsLogging.retentionPolicy.days, 4);
  assert.deepEqual([read.hourMetrics.enabled, read.hourMetrics.includeAPIs], [true, true]);
  assert.equal(read.minuteMetrics.enabled, false);
  assert.equal(read.defaultServiceVersion, "2020-10-02");
  assert.equal(read.deleteRetentionPolicy.days, 6);
  assert.equal(read.staticWebsite.errorDocument404Path, "errors/404.html");
  assert.deepEqual(read.cors.map((rule) => [rule.allowedOrigins, rule.allowedMethods, rule.maxAgeInSeconds]), [
    ["http://a.example", "GET,PUT", 9],
    ["*", "GET", 0],
  ]);
  await service.setProperties({ cors: [] });
  const without = await service.getProperties();
  assert.deepEqual([without.cors ?? [], without.deleteRetentionPolicy.days], [[], 6]);
  const wrong = { deleteRetentionPolicy: { enabled: true, days: 0 } };
  await refused(400, "InvalidXmlNodeValue", () => service.setProperties(wrong));
});

test("statistics come from the secondary endpoint alone", async () => {
  const mirror = `${server.endpoints.blob}-secondary`;
  const secondary = new BlobServiceClient(mirror, new StorageSharedKeyCredential(ACCOUNT, KEY));
  const { geoReplication } = await secondary.getStatistics();
  assert.equal(geoReplication.status, "live");
  assert.ok(geoReplication.lastSyncOn instanceof Date);
  await refused(400, "InvalidQueryParameterValue", () => service.getStatistics());
});

test("account information is told", async () => {
  const told = await service.getAccountInfo();
  assert.deepEqual([told.skuName, told.accountKind, told.isHierarchicalNamespaceEnabled], [
    "Standard_RAGRS",
    "StorageV2",
    false,
  ]);
});
