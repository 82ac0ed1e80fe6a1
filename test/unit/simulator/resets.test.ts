/** Reset connections, seen from the client's socket. */
import { createConnection } from "node:net";
import { connect } from "node:tls";
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../../simulator/simulator.ts";
import { CA, SERVER } from "../../support/tls.ts";
import { pathOf, plan, simulate } from "./client.ts";

interface Received {
  readonly text: string;
  /** How the connection ended: regularly, or with the error of a system call. */
  readonly end: string;
}

/** Requests the first file of the first transfer over a plain socket. */
function receive(simulator: Simulator): Promise<Received> {
  const { hostname: host, port, protocol } = new URL(simulator.url);
  const socket =
    protocol === "https:"
      ? connect({ host, port: Number(port), ca: CA })
      : createConnection({ host, port: Number(port) });
  const [transfer] = simulator.transfers();
  const path = transfer === undefined ? "/" : `${pathOf(transfer)}/files/${transfer.files[0]?.id}`;
  const headers = [
    "Host: simulator",
    "X-CS-MajorApiVersion: 1",
    "X-CS-MinimumMinorApiVersion: 12",
    "X-CS-ProductKey: api.rest",
    `X-CS-ClientId: ${simulator.clientId}`,
    "X-CS-Password: right",
    "Connection: close",
  ];
  socket.write(`GET ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    socket.on("end", () => resolve({ text, end: "goodbye" }));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      resolve({ text, end: `${error.syscall} ${error.code}` }),
    );
  });
}

const generated = plan({ files: [{ name: "big", generate: { bytes: 1_000_000 } }] });

describe("a reset", () => {
  test("comes before any answer", async () => {
    const simulator = await simulate({ transfers: [generated], faults: [{ does: { kind: "reset" } }] });
    expect(await receive(simulator)).toEqual({ text: "", end: "read ECONNRESET" });
    const { text, end } = await receive(simulator);
    expect([text.slice(0, 15), end]).toEqual(["HTTP/1.1 200 OK", "goodbye"]);
  });

  test.each([0, 1000, 50_000])("comes after %i bytes of the body", async (afterBytes) => {
    const simulator = await simulate({
      transfers: [generated],
      faults: [{ does: { kind: "reset", afterBytes } }],
    });
    const { text, end } = await receive(simulator);
    expect(end).toBe("read ECONNRESET");
    expect(text.length - text.indexOf("\r\n\r\n") - 4).toBe(afterBytes);
    expect(simulator.requests()).toMatchObject([{ status: 200, bytes: afterBytes }]);
  });

  test("comes after a stall", async () => {
    const simulator = await simulate({
      transfers: [generated],
      faults: [{ does: { kind: "stall", seconds: 0.02 } }, { does: { kind: "reset" } }],
    });
    expect(await receive(simulator)).toEqual({ text: "", end: "read ECONNRESET" });
  });
});

describe("the simulator over TLS", () => {
  test("serves, resets and closes", async () => {
    const scenario = {
      transfers: [generated],
      faults: [{ does: { kind: "reset", afterBytes: 1000 } as const }],
    };
    const simulator = await simulate(scenario, { tls: SERVER });
    expect(simulator.url).toMatch(/^https:/);
    expect(await receive(simulator)).toMatchObject({ end: "read ECONNRESET" });
    expect((await receive(simulator)).text).toMatch(/^HTTP\/1\.1 200 OK/);
    const idle = createConnection(Number(new URL(simulator.url).port), "127.0.0.1");
    await new Promise((resolve) => idle.once("connect", resolve));
    const ended = new Promise((resolve) =>
      idle
        .once("close", resolve)
        .on("error", () => {})
        .resume(),
    );
    await simulator.close();
    await ended;
  });
});
