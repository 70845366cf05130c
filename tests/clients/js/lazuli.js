// A real lazuli, as its users start it, on free ports and a data directory of its own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const ACCOUNT = "devstoreaccount1";
export const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
const BINARY = process.env.LAZULI_BIN || join(ROOT, "target/release/lazuli");
const SERVICES = ["blob", "queue", "table"];
const READY = /(Blob|Queue|Table) service is successfully listening at (http:\/\/127\.0\.0\.1:\d+)/;

/// The process. Started before the tests of a file, stopped after them.
export class Server {
  static async start(...options) {
    const server = new Server();
    server.location = await mkdtemp(join(tmpdir(), "lazuli-js-"));
    const ports = SERVICES.flatMap((service) => [`--${service}Port`, "0"]);
    server.process = spawn(BINARY, ["--location", server.location, "--silent", ...ports, ...options], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    server.endpoints = {};
    for await (const line of createInterface({ input: server.process.stdout })) {
      const found = READY.exec(line);
      if (found) server.endpoints[found[1].toLowerCase()] = `${found[2]}/${ACCOUNT}`;
      if (Object.keys(server.endpoints).length === SERVICES.length) return server;
    }
    throw new Error("lazuli ended before it was ready");
  }

  async stop() {
    const ended = once(this.process, "exit");
    this.process.kill("SIGTERM");
    const [status] = await ended;
    await rm(this.location, { recursive: true });
    assert.equal(status, 0);
  }

  get connectionString() {
    const { blob, queue, table } = this.endpoints;
    return (
      `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};` +
      `BlobEndpoint=${blob};QueueEndpoint=${queue};TableEndpoint=${table};`
    );
  }
}

/// Waits for a refusal and checks its status and code.
export async function refused(status, code, call) {
  await assert.rejects(call, (error) => {
    assert.deepEqual([error.statusCode, error.code ?? error.details?.errorCode], [status, code]);
    return true;
  });
}

/// All that an asynchronous iterator gives.
export async function all(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}
