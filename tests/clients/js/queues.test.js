// Queues and messages, through the official SDK.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { QueueServiceClient } from "@azure/storage-queue";

import { Server, all, refused } from "./lazuli.js";

let server, service;

before(async () => {
  server = await Server.start();
  service = QueueServiceClient.fromConnectionString(server.connectionString);
});
after(() => server.stop());

async function queue() {
  const client = service.getQueueClient(`q${randomUUID()}`);
  await client.create();
  return client;
}

test("a message is sent, received, updated and deleted", async () => {
  const jobs = await queue();
  const sent = await jobs.sendMessage("one", { messageTimeToLive: -1 });
  assert.equal(sent.expiresOn.getUTCFullYear(), 9999);
  assert.equal((await jobs.peekMessages()).peekedMessageItems[0].dequeueCount, 0);
  const [taken] = (await jobs.receiveMessages({ visibilityTimeout: 60 })).receivedMessageItems;
  assert.deepEqual([taken.messageId, taken.messageText, taken.dequeueCount], [sent.messageId, "one", 1]);
  assert.equal((await jobs.receiveMessages()).receivedMessageItems.length, 0);
  const updated = await jobs.updateMessage(taken.messageId, taken.popReceipt, "two", 0);
  await refused(400, "PopReceiptMismatch", () => jobs.deleteMessage(taken.messageId, taken.popReceipt));
  const [again] = (await jobs.receiveMessages()).receivedMessageItems;
  assert.deepEqual([again.messageText, again.dequeueCount], ["two", 2]);
  assert.notEqual(again.popReceipt, updated.popReceipt);
  await jobs.deleteMessage(again.messageId, again.popReceipt);
  await refused(404, "MessageNotFound", () => jobs.deleteMessage(again.messageId, again.popReceipt));
});

test("a text comes back as it was sent", async () => {
  const jobs = await queue();
  for (const text of ["  a\tb ", "<&>\"'&amp;", "\u{1F600} ü", "a\nb", "x".repeat(65_536)]) {
    await jobs.sendMessage(text);
    const [taken] = (await jobs.receiveMessages()).receivedMessageItems;
    assert.ok(taken.messageText === text, JSON.stringify(text.slice(0, 40)));
    await jobs.deleteMessage(taken.messageId, taken.popReceipt);
  }
});

test("an invisible message comes back when its time is up", async () => {
  const jobs = await queue();
  await jobs.sendMessage("late", { visibilityTimeout: 1 });
  const started = Date.now();
  let taken = [];
  while (taken.length === 0) taken = (await jobs.receiveMessages({ visibilityTimeout: 60 })).receivedMessageItems;
  assert.equal(taken[0].messageText, "late");
  assert.ok(Date.now() - started > 500);
});

test("many messages are received, each once, and all are cleared", async () => {
  const jobs = await queue();
  await Promise.all(Array.from({ length: 100 }, (_, number) => jobs.sendMessage(String(number))));
  assert.equal((await jobs.getProperties()).approximateMessagesCount, 100);
  const pages = await Promise.all(Array.from({ length: 4 }, () => jobs.receiveMessages({ numberOfMessages: 32 })));
  const texts = pages.flatMap((page) => page.receivedMessageItems.map((message) => message.messageText));
  assert.equal(new Set(texts).size, 100);
  await jobs.clearMessages();
  assert.equal((await jobs.getProperties()).approximateMessagesCount, 0);
});

test("queues are created, described, listed and deleted", async () => {
  const prefix = `list${randomUUID().slice(0, 8)}`;
  const names = [1, 2, 3, 4, 5].map((number) => `${prefix}-${number}`);
  for (const name of names) await service.createQueue(name, { metadata: { owner: name } });
  const existing = service.getQueueClient(names[0]);
  await refused(409, "QueueAlreadyExists", () => existing.create({ metadata: { other: "x" } }));
  assert.equal((await existing.createIfNotExists({ metadata: { other: "x" } })).succeeded, false);
  const pages = await all(service.listQueues({ prefix, includeMetadata: true }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.queueItems?.length), [2, 2, 1]);
  const listed = pages.flatMap((page) => page.queueItems);
  assert.deepEqual(listed.map((item) => [item.name, item.metadata.owner]), names.map((name) => [name, name]));
  await existing.setMetadata({ camelcase: "1" });
  assert.deepEqual((await existing.getProperties()).metadata, { camelcase: "1" });
  for (const name of names) await service.deleteQueue(name);
  assert.deepEqual(await all(service.listQueues({ prefix })), []);
  await refused(404, "QueueNotFound", () => existing.getProperties());
  assert.equal((await existing.deleteIfExists()).succeeded, false);
});

test("policies are kept", async () => {
  const jobs = await queue();
  const accessPolicy = { startsOn: new Date("2026-08-01"), expiresOn: new Date("2026-09-01"), permissions: "raup" };
  await jobs.setAccessPolicy([{ id: "workers", accessPolicy }]);
  assert.deepEqual((await jobs.getAccessPolicy()).signedIdentifiers, [{ id: "workers", accessPolicy }]);
});
