// Uploads, downloads, blocks, listings, metadata and access policies, through the official JavaScript SDK.

import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";

import { AnonymousCredential, BlobServiceClient } from "@azure/storage-blob";

import { Server, all, refused } from "./lazuli.js";

const MIB = 1024 * 1024;
let server, service, container;

before(async () => {
  server = await Server.start();
  service = BlobServiceClient.fromConnectionString(server.connectionString);
});
after(() => server.stop());
beforeEach(async () => {
  container = service.getContainerClient(`c${randomUUID().replaceAll("-", "")}`);
  await container.create();
});

for (const size of [0, 1, 4096, 4097, MIB - 1, 5 * MIB + 3]) {
  test(`a blob of ${size} bytes comes back as it was sent`, async () => {
    const data = randomBytes(size);
    const blob = container.getBlockBlobClient("sub folder/ü ?%#+&.bin");
    await blob.upload(data, size, { blobHTTPHeaders: { blobContentType: "image/png" } });
    assert.deepEqual(await blob.downloadToBuffer(), data);
    const properties = await blob.getProperties();
    assert.equal(properties.contentLength, size);
    assert.equal(properties.contentType, "image/png");
    assert.deepEqual(Buffer.from(properties.contentMD5), createHash("md5").update(data).digest());
  });
}

test("a large blob goes up in parallel blocks and down in parallel ranges", async () => {
  const data = randomBytes(17 * MIB + 5);
  const blob = container.getBlockBlobClient("large");
  await blob.uploadData(data, { blockSize: 2 * MIB, maxSingleShotSize: MIB, concurrency: 4 });
  assert.deepEqual(await blob.downloadToBuffer(undefined, undefined, { blockSize: 3 * MIB, concurrency: 4 }), data);
  assert.deepEqual(await blob.downloadToBuffer(4 * MIB - 3, 7), data.subarray(4 * MIB - 3, 4 * MIB + 4));
  const { committedBlocks } = await blob.getBlockList("committed");
  assert.equal(committedBlocks.length, 9);
});

test("blocks are staged, listed and committed", async () => {
  const blob = container.getBlockBlobClient("blocks");
  const id = (name) => Buffer.from(name).toString("base64");
  await blob.stageBlock(id("b"), "world", 5);
  await blob.stageBlock(id("a"), "hello ", 6);
  const staged = await blob.getBlockList("all");
  assert.deepEqual(staged.uncommittedBlocks.map((block) => [block.name, block.size]), [[id("a"), 6], [id("b"), 5]]);
  assert.deepEqual(staged.committedBlocks ?? [], []);
  await refused(404, "BlobNotFound", () => blob.download());
  await blob.commitBlockList([id("a"), id("b")]);
  assert.equal((await blob.downloadToBuffer()).toString(), "hello world");
  await refused(400, "InvalidBlockList", () => blob.commitBlockList([id("x")]));
});

for (const size of [1, 100_000, 9 * MIB + 7]) {
  test(`${size} bytes go both ways with a sum for each segment`, async () => {
    const summed = { contentChecksumAlgorithm: "StorageCrc64" };
    const data = randomBytes(size);
    const blob = container.getBlockBlobClient("summed");
    await blob.upload(data, size, summed);
    assert.deepEqual(await blob.downloadToBuffer(0, undefined, summed), data);
    const part = await blob.download(0, Math.ceil(size / 2), summed);
    assert.deepEqual(Buffer.concat(await all(part.readableStreamBody)), data.subarray(0, Math.ceil(size / 2)));
    await blob.stageBlock("aaaa", data, size, summed);
    await blob.commitBlockList(["aaaa"]);
    assert.deepEqual(await blob.downloadToBuffer(0, undefined, summed), data);
  });
}

test("listings go page by page, flat and by hierarchy", async () => {
  const names = [];
  for (const folder of ["a", "b", "c"]) for (let i = 0; i < 7; i++) names.push(`${folder}/${i}`);
  names.push("top", "über/1");
  await Promise.all(names.map((name) => container.getBlockBlobClient(name).upload(name, Buffer.byteLength(name))));
  assert.deepEqual((await all(container.listBlobsFlat())).map((blob) => blob.name), names);
  const pages = await all(container.listBlobsFlat().byPage({ maxPageSize: 10 }));
  assert.deepEqual(pages.map((page) => page.segment.blobItems.length), [10, 10, 3]);
  assert.deepEqual((await all(container.listBlobsFlat({ prefix: "b/" }))).map((blob) => blob.name), names.slice(7, 14));
  const tops = [];
  for await (const page of container.listBlobsByHierarchy("/").byPage({ maxPageSize: 2 })) {
    tops.push(...(page.segment.blobPrefixes ?? []).map((prefix) => prefix.name));
    tops.push(...page.segment.blobItems.map((blob) => blob.name));
  }
  assert.deepEqual(tops.sort(), ["a/", "b/", "c/", "top", "über/"]);
});

test("a listing begins at a name and falls back to XML", async () => {
  for (const name of ["a", "b", "c"]) await container.getBlockBlobClient(name).upload("1", 1);
  assert.deepEqual((await all(container.listBlobsFlat({ startFrom: "b" }))).map((blob) => blob.name), ["b", "c"]);
  const between = { responseFormat: "Arrow", startFrom: "b", endBefore: "c" };
  assert.deepEqual((await all(container.listBlobsFlat(between))).map((blob) => blob.name), ["b"]);
});

test("metadata keeps its case and properties are kept", async () => {
  const blob = container.getBlockBlobClient("described");
  const blobHTTPHeaders = { blobContentType: "text/plain", blobCacheControl: "no-cache", blobContentLanguage: "en" };
  await blob.upload("hello", 5, { metadata: { Owner: "Ann", camelCase: "One Two" }, blobHTTPHeaders });
  const [listed] = await all(container.listBlobsFlat({ includeMetadata: true }));
  assert.deepEqual(listed.metadata, { Owner: "Ann", camelCase: "One Two" });
  assert.equal(listed.properties.cacheControl, "no-cache");
  await blob.setMetadata({ only: "this" });
  await blob.setHTTPHeaders({ blobContentType: "text/html" });
  const properties = await blob.getProperties();
  assert.deepEqual(properties.metadata, { only: "this" });
  assert.deepEqual([properties.contentType, properties.cacheControl], ["text/html", undefined]);
  assert.notEqual(properties.etag, `"${listed.properties.etag}"`);
});

test("access policies are kept, and a public container is read without credentials", async () => {
  const startsOn = new Date("2026-01-01T00:00:00Z");
  const accessPolicy = { startsOn, expiresOn: new Date("2030-01-01T00:00:00Z"), permissions: "rl" };
  await container.setAccessPolicy("container", [{ id: "readers", accessPolicy }]);
  const policy = await container.getAccessPolicy();
  assert.equal(policy.blobPublicAccess, "container");
  assert.deepEqual(policy.signedIdentifiers.map(({ id, accessPolicy }) => [id, accessPolicy.permissions]), [["readers", "rl"]]);
  assert.deepEqual(policy.signedIdentifiers[0].accessPolicy.startsOn, startsOn);
  await container.getBlockBlobClient("a").upload("1", 1);
  const anonymous = new BlobServiceClient(service.url, new AnonymousCredential()).getContainerClient(container.containerName);
  assert.deepEqual((await all(anonymous.listBlobsFlat())).map((blob) => blob.name), ["a"]);
  await container.setAccessPolicy();
  await refused(401, "NoAuthenticationInformation", () => anonymous.getBlobClient("a").download());
});

test("many blobs are deleted at once", async () => {
  const blobs = ["a", "ü b", "c"].map((name) => container.getBlockBlobClient(name));
  await Promise.all(blobs.map((blob) => blob.upload("1", 1)));
  for (const client of [service.getBlobBatchClient(), container.getBlobBatchClient()]) {
    const { subResponses, subResponsesFailedCount } = await client.deleteBlobs([blobs.shift(), container.getBlobClient("absent")]);
    assert.deepEqual(subResponses.map(({ status }) => status), [202, 404]);
    assert.deepEqual([subResponsesFailedCount, subResponses[1].errorCode], [1, "BlobNotFound"]);
  }
  assert.deepEqual((await all(container.listBlobsFlat())).map((blob) => blob.name), ["c"]);
});

test("containers are created, described, listed and deleted", async () => {
  const own = service.getContainerClient("described-container");
  assert.equal((await own.createIfNotExists({ metadata: { Team: "Blue" } })).succeeded, true);
  assert.equal((await own.createIfNotExists()).succeeded, false);
  // The SDK folds the names of headers; in a listing they are elements.
  assert.deepEqual((await own.getProperties()).metadata, { team: "Blue" });
  const listed = await all(service.listContainers({ prefix: "described-", includeMetadata: true }));
  assert.deepEqual(listed.map(({ name, metadata }) => [name, metadata]), [["described-container", { Team: "Blue" }]]);
  await own.delete();
  assert.equal(await own.exists(), false);
  await refused(404, "ContainerNotFound", () => own.getProperties());
});
