// Conditions and leases, through the official JavaScript SDK.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";

import { BlobServiceClient } from "@azure/storage-blob";

import { Server, refused } from "./lazuli.js";

let server, service, container, blob;

before(async () => {
  server = await Server.start();
  service = BlobServiceClient.fromConnectionString(server.connectionString);
});
after(() => server.stop());
beforeEach(async () => {
  container = service.getContainerClient(`c${randomUUID().replaceAll("-", "")}`);
  await container.create();
  blob = container.getBlockBlobClient("shared");
});

test("of two writers with one version the second is refused", async () => {
  const { etag } = await blob.upload("original", 8);
  await blob.upload("other", 5, { conditions: { ifMatch: etag } });
  await refused(412, "ConditionNotMet", () => blob.upload("stale", 5, { conditions: { ifMatch: etag } }));
  assert.equal((await blob.downloadToBuffer()).toString(), "other");
});

test("exactly one racing create wins", async () => {
  const create = async (number) => {
    try {
      await blob.upload(`${number}`, 1, { conditions: { ifNoneMatch: "*" } });
      return [number];
    } catch (error) {
      assert.deepEqual([error.statusCode, error.code], [409, "BlobAlreadyExists"]);
      return [];
    }
  };
  const winners = (await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(create))).flat();
  assert.equal(winners.length, 1);
  assert.equal((await blob.downloadToBuffer()).toString(), `${winners[0]}`);
});

test("reads are conditional on versions and dates", async () => {
  const { etag, lastModified } = await blob.upload("1", 1);
  await refused(304, "ConditionNotMet", () => blob.download(0, undefined, { conditions: { ifNoneMatch: etag } }));
  await refused(304, "ConditionNotMet", () => blob.getProperties({ conditions: { ifModifiedSince: lastModified } }));
  await refused(412, "ConditionNotMet", () => blob.download(0, undefined, { conditions: { ifMatch: '"0x1"' } }));
  await blob.getProperties({ conditions: { ifUnmodifiedSince: lastModified } });
});

test("a leased blob is written only with its lease, through every lease action", async () => {
  await blob.upload("1", 1);
  const lease = blob.getBlobLeaseClient();
  const { leaseId } = await lease.acquireLease(-1);
  await refused(412, "LeaseIdMissing", () => blob.upload("2", 1));
  await refused(409, "LeaseAlreadyPresent", () => blob.getBlobLeaseClient().acquireLease(15));
  await blob.upload("3", 1, { conditions: { leaseId } });
  const next = randomUUID();
  await lease.changeLease(next);
  await lease.renewLease();
  const { leaseState, leaseDuration } = await blob.getProperties();
  assert.deepEqual([leaseState, leaseDuration], ["leased", "infinite"]);
  await lease.breakLease(30);
  await refused(409, "LeaseIsBreakingAndCannotBeAcquired", () => blob.getBlobLeaseClient(next).acquireLease(15));
  await lease.releaseLease();
  await blob.upload("4", 1);
});

test("a leased container is deleted only with its lease", async () => {
  const lease = container.getBlobLeaseClient();
  const { leaseId } = await lease.acquireLease(60);
  await refused(412, "LeaseIdMissing", () => container.delete());
  await blob.upload("inside", 6);
  await container.delete({ conditions: { leaseId } });
});
