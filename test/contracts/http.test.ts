import { createServer, type OutgoingHttpHeaders } from "node:http";
import { createServer as createRawServer } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Misbehaviour } from "../../simulator/scenario.ts";
import { Fault } from "../../src/base/faults.ts";
import { Secret } from "../../src/base/secret.ts";
import type { Download } from "../../src/service/port.ts";
import { listen, openWitness } from "../support/servers.ts";
import {
  expectFault,
  firstFile,
  openPair,
  openTestService,
  SIGNAL,
  transferPlan,
  verify,
} from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

test("every request names the program", async () => {
  const userAgent = "inlet/1.2.3 (+https://x.example)";
  const { service, access, simulator } = await openPair({}, { userAgent });
  await service.pollReceived(await verify(service), {}, SIGNAL);
  await service.information(access, SIGNAL);
  await service.apiVersions(SIGNAL);
  const names = new Set(simulator.requests().map(({ headers }) => headers["user-agent"]));
  expect([...names]).toEqual([userAgent]);
});

const LARGE = [{ name: "large.bin", generate: { bytes: 1_000_000 } }];
const WITH_LARGE = { transfers: [transferPlan({ files: LARGE })] };

describe("every failure of a request is a fault with a verdict", () => {
  const answers: readonly (readonly [string, Misbehaviour, string, string])[] = [
    ["a reset before the answer", { kind: "reset" }, "CONNECTION_LOST", "retry"],
    ["a reset inside the answer", { kind: "reset", afterBytes: 10 }, "CONNECTION_LOST", "retry"],
    ["an answer cut short", { kind: "truncate", afterBytes: 10, announce: true }, "CONNECTION_LOST", "retry"],
    ["half a document", { kind: "truncate", afterBytes: 10 }, "BAD_ANSWER", "retry"],
    ["silence", { kind: "stall" }, "SERVICE_TIMEOUT", "retry"],
    ["silence inside the answer", { kind: "stall", afterBytes: 5 }, "SERVICE_TIMEOUT", "retry"],
    ["an HTML page", { kind: "html" }, "BAD_ANSWER", "retry"],
    ["an HTML page with a failure", { kind: "html", status: 502 }, "SERVER_FAULT", "retry"],
    ["nothing", { kind: "body", text: "" }, "BAD_ANSWER", "retry"],
    ["null", { kind: "body", text: "null" }, "BAD_ANSWER", "retry"],
    ["a number", { kind: "body", text: "42" }, "BAD_ANSWER", "retry"],
    ["JSON without data", { kind: "body", text: "{}" }, "BAD_ANSWER", "retry"],
    ["data of the wrong type", { kind: "alter", path: "data", value: "x" }, "BAD_ANSWER", "retry"],
    ["a field of the wrong type", { kind: "alter", path: "data.0.size", value: "5" }, "BAD_ANSWER", "retry"],
    ["a field missing", { kind: "alter", path: "data.0.id" }, "BAD_ANSWER", "retry"],
    ["an encoding that was not requested", { kind: "encoding", encoding: "br" }, "BAD_ANSWER", "retry"],
    ["too many requests", { kind: "error", status: 429, errorCode: 2007 }, "RATE_LIMITED", "wait"],
    ["a failing service", { kind: "error", status: 500, errorCode: 5000 }, "SERVER_FAULT", "retry"],
    ["a missing licence", { kind: "error", status: 403, errorCode: 3001 }, "NOT_LICENSED", "wait"],
    ["an unknown refusal", { kind: "error", status: 418, errorCode: 12345 }, "BAD_REQUEST", "fatal"],
  ];
  test.each(answers)("%s", async (_case, does, code, verdict) => {
    const { service, access, simulator } = await openPair({});
    simulator.addFault({ on: "files", does });
    // Only silence is waited out.
    const hasty = does.kind === "stall" ? openTestService(simulator, { timeoutMs: 300 }) : service;
    const failure = await hasty.files(access, SIGNAL).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Fault);
    expect(failure).toMatchObject({ code, verdict });
    expect(String(failure)).toContain("the list of files");
    expect(await service.files(access, SIGNAL)).toHaveLength(2);
  });

  test("an answer that trickles for ever", async () => {
    const { service, access, simulator } = await openPair({}, { timeoutMs: 200 });
    simulator.addFault({ on: "files", does: { kind: "drip", bytes: 1, pauseMs: 50 } });
    await expect(service.files(access, SIGNAL)).rejects.toMatchObject({ code: "SERVICE_TIMEOUT" });
  });

  test.each([
    ["information", 2],
    ["page", 5],
    ["files", 49],
  ] as const)("an answer larger than any honest one, packed or not: %s of %i MiB", async (ask, mebibytes) => {
    const huge = Buffer.alloc(mebibytes * 1024 * 1024, " ");
    for (const packed of [true, false]) {
      const headers = packed ? { "content-encoding": "gzip" } : {};
      const { service, access } = await openAnswering(200, headers, packed ? gzipSync(huge) : huge);
      const asked = {
        information: () => service.information(access, SIGNAL),
        page: () => service.pollReceived({ email: MAILBOX, token: new Secret("token") }, {}, SIGNAL),
        files: () => service.files(access, SIGNAL),
      };
      await expect(asked[ask]()).rejects.toMatchObject({ code: "ANSWER_TOO_LARGE" });
    }
  });

  test("an answer that is not HTTP, and a closed port", async () => {
    const { service, access } = await openPair({}, { baseUrl: new URL("http://127.0.0.1:1") });
    await expectFault(service.files(access, SIGNAL), "SERVICE_UNREACHABLE", "retry");
    const raw = createRawServer((socket) => {
      socket.on("error", () => {}).end("SSH-2.0-OpenSSH\r\n");
    });
    await new Promise<void>((resolve) => raw.listen(0, "127.0.0.1", resolve));
    const { port } = raw.address() as { port: number };
    const other = await openPair({}, { baseUrl: new URL(`http://127.0.0.1:${port}`) });
    await expect(other.service.files(other.access, SIGNAL)).rejects.toMatchObject({ code: "BAD_ANSWER" });
    raw.close();
  });

  test("unknown fields and states are no fault", async () => {
    const { service, access, simulator } = await openPair();
    for (const path of ["data.0.novelty", "future"])
      simulator.addFault({ on: "files", does: { kind: "alter", path, value: { deep: [1] } } });
    expect(await service.files(access, SIGNAL)).toHaveLength(2);
  });

  test("the service's Retry-After is understood", async () => {
    const { service, access, simulator } = await openPair();
    simulator.addFault({ on: "files", does: { kind: "error", status: 503, retryAfter: "17" } });
    const failed = { code: "SERVER_FAULT", retryAfterMs: 17_000 };
    await expect(service.files(access, SIGNAL)).rejects.toMatchObject(failed);
    const date = new Date(Date.now() + 90_000).toUTCString();
    simulator.addFault({ on: "files", does: { kind: "error", status: 429, retryAfter: date } });
    const fault = await service.files(access, SIGNAL).catch((error: unknown) => error as Fault);
    expect((fault as Fault).retryAfterMs).toBeGreaterThan(80_000);
  });
});

describe("a refusal stays a refusal, however slowly its body arrives", () => {
  test("for JSON and for downloads", async () => {
    const url = await listen(
      createServer((_request, response) => {
        response.writeHead(401, { "content-type": "application/json" });
        const drip = setInterval(() => response.write(" "), 50);
        response.on("close", () => clearInterval(drip));
      }),
    );
    const { service, access } = await openPair({}, { baseUrl: new URL(url), timeoutMs: 1_000 });
    const refused = { code: "ACCESS_REFUSED", answeredBy: "intermediary" };
    await expect(service.files(access, SIGNAL)).rejects.toMatchObject(refused);
    await expect(service.openZip(access, {}, SIGNAL)).rejects.toMatchObject(refused);
  });

  test("a later stop does not hide it", async () => {
    const stop = new AbortController();
    const url = await listen(
      createServer((_request, response) => {
        response.writeHead(401).write(" ");
        setTimeout(() => stop.abort(), 50);
      }),
    );
    const { service, access } = await openPair({}, { baseUrl: new URL(url) });
    await expect(service.files(access, stop.signal)).rejects.toMatchObject({ code: "ACCESS_REFUSED" });
  });
});

describe("a body that breaks is a fault", () => {
  const bodies: readonly (readonly [string, Misbehaviour, string])[] = [
    ["reset", { kind: "reset", afterBytes: 100_000 }, "CONNECTION_LOST"],
    ["cut short", { kind: "truncate", afterBytes: 100_000, announce: true }, "CONNECTION_LOST"],
    ["stalled", { kind: "stall", afterBytes: 100_000 }, "SERVICE_TIMEOUT"],
  ];
  test.each(bodies)("%s", async (_case, does, code) => {
    const timeoutMs = does.kind === "stall" ? 1_000 : 20_000;
    const { service, access, transfer, simulator } = await openPair(WITH_LARGE, { timeoutMs });
    simulator.addFault({ on: "file", does });
    const download = await service.openFile(access, firstFile(transfer), {}, SIGNAL);
    await expect(count(download)).rejects.toMatchObject({ code });
  });

  test("but not if it is compressed, or sent without its length", async () => {
    const { service, access, transfer, simulator } = await openPair(WITH_LARGE);
    const file = firstFile(transfer);
    simulator.addFault({ on: "file", does: { kind: "encoding", encoding: "gzip" } });
    expect(await count(await service.openFile(access, file, {}, SIGNAL))).toBe(1_000_000);
    simulator.addFault({ on: "file", does: { kind: "omit", headers: ["content-length", "etag"] } });
    const bare = await service.openFile(access, file, {}, SIGNAL);
    expect(bare).toMatchObject({ totalBytes: undefined, etag: undefined });
    expect(await count(bare)).toBe(1_000_000);
    simulator.addFault({ on: "file", does: { kind: "encoding", encoding: "br" } });
    await expect(service.openFile(access, file, {}, SIGNAL)).rejects.toMatchObject({ code: "BAD_ANSWER" });
  });

  test("also if its compression is broken", async () => {
    const packed = gzipSync(Buffer.alloc(100_000, "x"));
    packed[50] = (packed[50] ?? 0) ^ 255;
    const { service, access } = await openAnswering(200, { "content-encoding": "gzip" }, packed);
    const download = await service.openFile(access, { id: "x", name: "x" }, {}, SIGNAL);
    await expect(count(download)).rejects.toMatchObject({ code: "BAD_ANSWER" });
  });

  test("and so is an HTML page instead of a ZIP or a message", async () => {
    const { service, access, simulator } = await openPair({ transfers: [transferPlan({ message: "Hi" })] });
    for (const on of ["zip", "eml", "checksums"] as const) simulator.addFault({ on, does: { kind: "html" } });
    const page = { code: "BAD_ANSWER", message: expect.stringContaining("an HTML page") };
    await expect(service.openZip(access, {}, SIGNAL)).rejects.toMatchObject(page);
    await expect(service.openEml(access, {}, SIGNAL)).rejects.toMatchObject(page);
    await expect(service.checksums(access, [], SIGNAL)).rejects.toMatchObject(page);
  });

  test("a list page with too many entries is refused as a whole", async () => {
    const text = JSON.stringify({ data: Array.from({ length: 5000 }, () => 0) });
    const { service, simulator } = await openPair();
    const address = await verify(service);
    simulator.addFault({ on: "received", does: { kind: "body", text } });
    await expectFault(service.pollReceived(address, {}, SIGNAL), "ANSWER_TOO_LARGE");
  });
});

describe("secrets go to the configured origin only", () => {
  test.each([301, 302, 303, 307, 308] as const)(
    "a redirect (%i) to another origin is never followed",
    async (status) => {
      const witness = await openWitness();
      const { service, access, transfer, simulator } = await openPair();
      for (const on of ["files", "file"] as const) {
        simulator.addFault({ on, does: { kind: "redirect", to: `${witness.url}/api/stolen`, status } });
      }
      await expectFault(service.files(access, SIGNAL), "REDIRECT_REFUSED", "wait");
      await expect(service.openFile(access, firstFile(transfer), {}, SIGNAL)).rejects.toThrow(witness.url);
      expect(witness.seen).toEqual([]);
    },
  );

  test("another scheme, port or user information counts as another origin", async () => {
    const { service, access, simulator } = await openPair();
    const { port } = new URL(simulator.url);
    const elsewhere = [
      `http://127.0.0.1:${Number(port) === 65535 ? 1 : Number(port) + 1}/`,
      `https://127.0.0.1:${port}/`,
      `http://localhost:${port}/`,
      "//evil.example/",
      "javascript:0",
      "http://[",
    ];
    for (const to of elsewhere) {
      simulator.clearFaults();
      simulator.addFault({ on: "files", does: { kind: "redirect", to } });
      await expect(service.files(access, SIGNAL)).rejects.toBeInstanceOf(Fault);
    }
    expect(simulator.totals().files).toBe(elsewhere.length);
  });

  test("a redirect within the origin is followed, but not for ever", async () => {
    const { service, access, simulator } = await openPair();
    const path = `/api/transfers/${access.transferId}/files`;
    simulator.addFault({ on: "files", times: 3, does: { kind: "redirect", to: path } });
    expect(await service.files(access, SIGNAL)).toHaveLength(2);
    simulator.addFault({ on: "files", times: "always", does: { kind: "redirect", to: path } });
    await expect(service.files(access, SIGNAL)).rejects.toMatchObject({ code: "BAD_ANSWER" });
  });

  test("a redirect to another service at the same origin is never followed, but one below the base URL is", async () => {
    const seen: string[] = [];
    let location = "";
    const server = createServer((request, response) => {
      seen.push(request.url ?? "");
      if (seen.length > 1) response.end(JSON.stringify({ data: [] }));
      else response.writeHead(307, { location }).end();
    });
    const url = await listen(server);
    const service = openTestService({ url: `${url}/one/`, clientId: "c".repeat(60) });
    const access = { transferId: "t", password: new Secret("p") };
    for (const path of ["/two/api/stolen", "/one-more/api/stolen", "/one/../two/stolen", "/", "//one/"]) {
      seen.length = 0;
      location = path;
      await expect(service.files(access, SIGNAL)).rejects.toMatchObject({ code: "REDIRECT_REFUSED" });
      expect(seen).toHaveLength(1);
    }
    seen.length = 0;
    location = "/one/api/transfers/t/files/";
    expect(await service.files(access, SIGNAL)).toEqual([]);
    expect(seen).toEqual(["/one/api/transfers/t/files", location]);
  });

  test("a base URL whose path looks like another host stays where it is", async () => {
    const witness = await openWitness();
    const { simulator, access } = await openPair();
    const { host } = new URL(witness.url);
    const service = openTestService(simulator, { baseUrl: new URL(`${simulator.url}//${host}/x`) });
    await expect(service.files(access, SIGNAL)).rejects.toMatchObject({ code: "NO_SUCH_ENDPOINT" });
    expect(witness.seen).toEqual([]);
  });

  test("no fault repeats a secret that the service echoes back, or its control characters and all of a long text", async () => {
    const { service, access, simulator } = await openPair();
    const secrets = [access.password?.reveal() ?? "", simulator.clientId];
    const echoed = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]).join(" ");
    const echo = (on: "verification-token" | "password-check" | "files", errorMessage: string) =>
      simulator.addFault({ on, does: { kind: "error", status: 400, errorCode: 1004, errorMessage } });
    const askFiles = () => service.files(access, SIGNAL).catch((error: unknown) => error as Fault);
    echo("files", echoed);
    const fault = await askFiles();
    for (const secret of secrets) expect(`${fault} ${JSON.stringify(fault)}`).not.toContain(secret);
    echo("verification-token", 'bad value {"verificationCode":"CODE-123456"}');
    echo("password-check", "MyNewPassword!9 is weak");
    echo("files", "it was Sunny%2bHarbour&#37;42%20%C3%A4");
    const faults = [
      fault,
      await service.obtainToken("a@example.com", new Secret("CODE-123456"), SIGNAL).catch(String),
      await service.checkPassword(new Secret("MyNewPassword!9"), SIGNAL).catch(String),
      await askFiles(),
    ];
    for (const each of faults.map(String)) {
      expect(each).toContain("[secret]");
      expect(each).not.toMatch(/CODE-123456|MyNewPassword|Harbour/);
    }
    echo("files", `\u001b[31m${"x".repeat(1000)}`);
    const text = String(await askFiles());
    expect(text).not.toContain("\u001b");
    expect(text.length).toBeLessThan(400);
  });

  test("every request carries the four fixed headers, and a base URL may have a path of its own", async () => {
    const witness = await openWitness();
    const { simulator } = await openPair();
    const service = openTestService(simulator, { baseUrl: new URL(`${witness.url}/transfer/`) });
    await service.files({ transferId: "ab/c", password: new Secret("p ä") }, SIGNAL);
    const [request] = witness.seen;
    expect(request?.url).toBe("/transfer/api/transfers/ab%2Fc/files");
    expect(request?.headers).toMatchObject({
      "x-cs-majorapiversion": "1",
      "x-cs-minimumminorapiversion": "7",
      "x-cs-productkey": "api.rest",
      "x-cs-clientid": simulator.clientId,
      "x-cs-password": "p%20%C3%A4",
      "accept-language": "en",
      "accept-encoding": "gzip",
    });
  });
});

/** A service that gives each request the same answer. */
async function openAnswering(status: number, headers: OutgoingHttpHeaders, body: Buffer) {
  const server = createServer((_request, response) => void response.writeHead(status, headers).end(body));
  return openPair({}, { baseUrl: new URL(await listen(server)) });
}

async function count(download: Download): Promise<number> {
  let bytes = 0;
  for await (const chunk of download.body) bytes += chunk.byteLength;
  return bytes;
}
