// Snapshots, soft delete and listings of both, through the official JavaScript SDK.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";

import { BlobServiceClient } from "@azure/storage-blob";

import { Server, all, refused } from "./lazuli.js";

let server, service, container;

before(async () => {
  server = await Server.start();
  service = BlobServiceClient.fromConnectionString(server.connectionString);
  await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 7 } });
});
after(() => server.stop());
beforeEach(async () => {
  container = service.getContainerClient(`c${randomUUID().replaceAll("-", "")}`);
  await container.create();
});

test("a snapshot is taken, read, listed and deleted", async () => {
  const blob = container.getBlockBlobClient("a");
  await blob.upload("one", 3, { metadata: { of: "base" } });
  const { snapshot, etag } = await blob.createSnapshot();
  assert.equal(etag, (await blob.getProperties()).etag);
  await blob.upload("two", 3);
  const old = blob.withSnapshot(snapshot);
  assert.equal((await old.downloadToBuffer()).toString(), "one");
  assert.deepEqual((await old.getProperties()).metadata, { of: "base" });
  const listed = await all(container.listBlobsFlat({ includeSnapshots: true }));
  assert.deepEqual(listed.map((item) => item.snapshot ?? ""), [snapshot, ""]);
  await refused(409, "SnapshotsPresent", () => blob.delete());
  await refused(400, "InvalidQueryParameterValue", () => old.setMetadata({}));
  await old.delete();
  await refused(404, "BlobNotFound", () => old.download());
  await blob.delete();
});

test("a deleted blob comes back with its snapshots", async () => {
  const blob = container.getBlockBlobClient("folder/a");
  await blob.upload("one", 3);
  const { snapshot } = await blob.createSnapshot();
  await blob.delete({ deleteSnapshots: "include" });
  await refused(404, "BlobNotFound", () => blob.download());
  const deleted = await all(container.listBlobsFlat({ includeDeleted: true, includeSnapshots: true }));
  assert.deepEqual(deleted.map((item) => [item.snapshot ?? "", item.deleted]), [[snapshot, true], ["", true]]);
  assert.equal(deleted[1].properties.remainingRetentionDays, 6);
  const folders = await all(container.listBlobsByHierarchy("/", { includeDeleted: true }));
  assert.deepEqual(folders.map((item) => [item.kind, item.name]), [["prefix", "folder/"]]);
  await blob.undelete();
  assert.equal((await blob.downloadToBuffer()).toString(), "one");
  assert.equal((await blob.withSnapshot(snapshot).downloadToBuffer()).toString(), "one");
});
