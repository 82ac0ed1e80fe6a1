/** A plain HTTP client for tests of the simulated service. */
import { type IncomingHttpHeaders, request } from "node:http";
import { gunzipSync } from "node:zlib";
import { onTestFinished } from "vitest";
import { openSimulator, type SimulatorOptions } from "../../../simulator/open.ts";
import type { Scenario, TransferPlan } from "../../../simulator/scenario.ts";
import type { SimulatedTransfer, Simulator } from "../../../simulator/simulator.ts";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** The error code of a connection that broke before the end of the answer. */
  readonly broken: string | undefined;
}

export interface Asking {
  readonly method?: string;
  readonly query?: Record<string, string | readonly string[]>;
  /** In addition to the standard headers; `undefined` removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** Sent in the header, encoded. */
  readonly password?: string;
  readonly signal?: AbortSignal;
  /** Called for each chunk of the body. */
  readonly onChunk?: (chunk: Buffer) => void;
}

/** Opens a simulator that is closed after the test. */
export async function simulate(scenario: Scenario = {}, options: SimulatorOptions = {}): Promise<Simulator> {
  const simulator = await openSimulator(scenario, options);
  onTestFinished(() => simulator.close());
  return simulator;
}

export function ask(simulator: Simulator, path: string, asking: Asking = {}): Promise<Answer> {
  const url = new URL(simulator.url + path);
  for (const [name, values] of Object.entries(asking.query ?? {})) {
    for (const value of [values].flat()) url.searchParams.append(name, value);
  }
  const { body } = asking;
  const sent = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method: asking.method ?? (body === undefined ? "GET" : "POST"),
      headers: headersOf(simulator, asking),
      agent: false,
      ...(asking.signal === undefined ? {} : { signal: asking.signal }),
    });
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      const chunks: Buffer[] = [];
      let broken: string | undefined;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        asking.onChunk?.(chunk);
      });
      response.on("error", (error: NodeJS.ErrnoException) => {
        broken = error.code ?? error.name;
      });
      response.on("close", () => {
        const bytes = Buffer.concat(chunks);
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, bytes, text: bytes.toString(), broken });
      });
    });
    outgoing.end(sent);
  });
}

/** The answer as JSON, whatever its shape. */
// biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape.
export function jsonOf(answer: Answer): any {
  const isZipped = answer.headers["content-encoding"] === "gzip";
  return JSON.parse(isZipped ? gunzipSync(answer.bytes).toString() : answer.text);
}

/** Status and error code, such as `401/3003`. */
export function errorOf(answer: Answer): string {
  return `${answer.status}/${jsonOf(answer).errorCode}`;
}

/** A token for an address, obtained with the registered client id. */
async function tokenFor(simulator: Simulator, address: string): Promise<string> {
  const answer = await ask(simulator, `/api/users/${address}/verification/token`, { method: "POST" });
  return jsonOf(answer).data.token;
}

/** A page of the received, sent or deprecated list. */
export async function poll(
  simulator: Simulator,
  address: string,
  query: Record<string, string> = {},
  list = "/received-transfers",
): Promise<Answer> {
  const token = await tokenFor(simulator, address);
  return ask(simulator, `/api/users/${address}/transfers${list}`, {
    query,
    headers: { "X-CS-VerificationToken": token },
  });
}

/** A transfer to one mailbox, with one small file and the password `right`, unless overridden. */
export function plan(more: Partial<TransferPlan> = {}): TransferPlan {
  return {
    from: "anna@supplier.example",
    to: ["orders@example.com"],
    password: "right",
    files: [{ name: "hello.txt", text: "Hello, world" }],
    ...more,
  };
}

/** A simulator with one transfer. `get` asks its recipient's path with the right password; `file` is its first file. */
export async function simulateOne(more: Partial<TransferPlan> = {}, scenario: Scenario = {}) {
  const simulator = await simulate(scenario);
  const { password = "" } = plan(more);
  const transfer = simulator.addTransfer(plan(more));
  const path = pathOf(transfer);
  const get = (extra = "", asking: Asking = {}) => ask(simulator, path + extra, { password, ...asking });
  return { simulator, transfer, path, file: `/files/${transfer.files[0]?.id}`, get };
}

export function pathOf(transfer: SimulatedTransfer, recipient = 0): string {
  return `/api/transfers/${transfer.recipients[recipient]?.transferId}`;
}

/** For `headers`: without the standard ones. */
export const NO_HEADERS = {
  "X-CS-MajorApiVersion": undefined,
  "X-CS-MinimumMinorApiVersion": undefined,
  "X-CS-ProductKey": undefined,
  "X-CS-ClientId": undefined,
};

function headersOf(simulator: Simulator, asking: Asking): Record<string, string> {
  const headers = {
    "X-CS-MajorApiVersion": "1",
    "X-CS-MinimumMinorApiVersion": "8",
    "X-CS-ProductKey": "api.rest",
    "X-CS-ClientId": simulator.clientId,
    "Content-Type": asking.body === undefined ? undefined : "application/json",
    "X-CS-Password": asking.password === undefined ? undefined : encodeURIComponent(asking.password),
    ...asking.headers,
  };
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
