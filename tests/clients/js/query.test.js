// Queries over the contents of blobs, through the official JavaScript SDK.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { BlobServiceClient } from "@azure/storage-blob";

import { Server, refused } from "./lazuli.js";

const ROWS = "100,200,300,400\n150,hello,350,450\n";
let server, blob;

before(async () => {
  server = await Server.start();
  const container = BlobServiceClient.fromConnectionString(server.connectionString).getContainerClient("data");
  await container.create();
  blob = container.getBlockBlobClient("numbers.csv");
  await blob.upload(ROWS, ROWS.length);
});
after(() => server.stop());

async function results(expression, options) {
  const response = await blob.query(expression, options);
  const chunks = [];
  for await (const chunk of response.readableStreamBody) chunks.push(chunk);
  return { text: Buffer.concat(chunks).toString(), response };
}

test("a query answers with its results and the headers of the blob", async () => {
  const { text, response } = await results("select * from BlobStorage");
  assert.equal(text, ROWS);
  assert.equal(response.contentType, "avro/binary");
  assert.equal(response.blobType, "BlockBlob");
  assert.equal(response.leaseState, "available");
  assert.equal((await results("select _2 from BlobStorage where _1 > 200")).text, "");
});

test("progress is reported, and the end", async () => {
  const reported = [];
  await results("select * from BlobStorage", { onProgress: ({ loadedBytes }) => reported.push(loadedBytes) });
  assert.deepEqual(reported, [ROWS.length, ROWS.length]);
});

test("a record that fails is reported and passed over", async () => {
  const errors = [];
  const { text } = await results("select _2 from BlobStorage where _2 > 100", { onError: (error) => errors.push(error) });
  assert.equal(text, "200\n");
  const expected = { name: "InvalidTypeConversion", description: "Invalid type conversion.", position: 16, isFatal: false };
  assert.deepEqual(errors, [expected]);
});

test("a blob that cannot be parsed is a fatal error", async () => {
  const errors = [];
  const inputTextConfiguration = { kind: "json", recordSeparator: "\n" };
  await results("select * from BlobStorage", { inputTextConfiguration, onError: (error) => errors.push(error) });
  assert.deepEqual(errors.map(({ name, isFatal }) => [name, isFatal]), [["ParseError", true]]);
});

test("formats are converted", async () => {
  const csv = { kind: "csv", recordSeparator: "\n", columnSeparator: "," };
  const json = { kind: "json", recordSeparator: ";" };
  const options = { inputTextConfiguration: csv, outputTextConfiguration: json };
  assert.equal((await results("select _1, _3 as c from BlobStorage", options)).text, '{"_1":"100","c":"300"};{"_1":"150","c":"350"};');
});

test("a bad query is refused", async () => {
  await refused(400, "ErrorProcessingQueryExpression", () => blob.query("selekt"));
});
