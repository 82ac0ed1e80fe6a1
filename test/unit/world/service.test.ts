/** The real client of the service over the network of worlds: what it gets in virtual time, in fair and in foul weather. */
import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Secret } from "../../../src/base/secret.ts";
import { pause } from "../../../src/base/timers.ts";
import { WANTED_FIELDS } from "../../../src/mailbox/list-fields.ts";
import type { ServicePort } from "../../../src/service/port.ts";
import { openService } from "../../../src/service/service.ts";
import { writeZip } from "../../support/zip-writer.ts";
import { SimulatedDisk } from "../../world/ground/disk.ts";
import { type Ground, Process, START_MS } from "../../world/ground/process.ts";
import { Random } from "../../world/ground/random.ts";
import { Schedule } from "../../world/ground/schedule.ts";
import type { Mood, ServiceHabits, StoredTransfer, Weather } from "../../world/plan/sent.ts";
import { transferIdOf } from "../../world/service/holdings.ts";
import { Network } from "../../world/service/network.ts";
import type { RequestEntry } from "../../world/service/requests.ts";
import { WorldService } from "../../world/service/service.ts";

const URL_OF_SERVICE = "https://service.example";
const CLIENT_ID = "Client".padEnd(60, "0");
const BOX = "box@example.com";
const TIMEOUT_MS = 30_000;

interface Options {
  readonly habits?: ServiceHabits;
  readonly transfers?: readonly StoredTransfer[];
  readonly baseUrl?: string;
  readonly seed?: number;
}

/** One service, and one process with a client of it. */
function makeScene({
  habits,
  transfers = [transferOf({})],
  baseUrl = URL_OF_SERVICE,
  seed = 1,
}: Options = {}) {
  const schedule = new Schedule(START_MS);
  const random = new Random(seed);
  const disk = new SimulatedDisk(() => schedule.nowMs);
  const ground = { schedule, random, disk, locks: new Map(), watches: new Set() };
  const process = new Process("client", ground as unknown as Ground);
  const nowMs = () => schedule.nowMs;
  const service = new WorldService({
    ...{ number: 0, url: URL_OF_SERVICE, clientId: CLIENT_ID },
    ...{ transfers, habits, random, nowMs },
  });
  const requests: RequestEntry[] = [];
  const answered: RequestEntry[] = [];
  service.onRequest = (entry) => void requests.push(entry);
  service.onAnswered = (entry) => void answered.push(entry);
  const network = new Network(schedule);
  network.hosts.set(URL_OF_SERVICE, service);
  network.hosts.set(`${URL_OF_SERVICE}.`, service);
  const client = process.run(() =>
    openService({
      baseUrl: new URL(baseUrl),
      clientId: new Secret(CLIENT_ID),
      acceptLanguage: "de",
      userAgent: "test",
      maxRequests: () => 8,
      idListForm: "comma",
      proxy: { http: "", https: "", except: "" },
      ca: undefined,
      cert: undefined,
      key: undefined,
      timeoutMs: TIMEOUT_MS,
      openConnections: network.open(process),
    }),
  );
  /** Lets time pass until the work is done. Returns a fault's code and how long it took. */
  const run = async <Value>(work: (client: ServicePort, signal: AbortSignal) => Promise<Value>) => {
    const sinceMs = schedule.nowMs;
    let end: { value?: Value; code?: string } | undefined;
    const running = process.run(() => work(client, new AbortController().signal));
    running.then(
      (value) => (end = { value }),
      (error: unknown) => (end = { code: error instanceof Fault ? error.code : String(error) }),
    );
    await schedule.run(sinceMs + 60 * 60_000, () => end !== undefined);
    return { ...end, ms: schedule.nowMs - sinceMs };
  };
  const list = async (client: ServicePort, signal: AbortSignal, fields = WANTED_FIELDS) => {
    const { token } = await client.obtainToken(BOX, undefined, signal);
    return (await client.pollReceived({ email: BOX, token }, { active: true, fields }, signal)).entries;
  };
  return { schedule, process, service, network, client, requests, answered, run, list };
}

function transferOf(more: Partial<StoredTransfer>): StoredTransfer {
  const files = [fileOf("f1", "report.txt", "a report"), fileOf("f2", "list, with comma.csv", "a,b,c")];
  return {
    trackingId: "t1",
    service: 0,
    sender: "anna@a.example",
    subject: "matter",
    recipients: [BOX, "other@example.com"],
    password: "Secret 1%",
    files,
    message: Buffer.from("Subject: hello\r\n\r\nhello\r\n"),
    zip: writeZip(files.map(({ name, bytes }) => ({ name, content: bytes, method: 0 }))),
    expiresMs: START_MS + 30 * 24 * 60 * 60_000,
    state: "active",
    wrong: 0,
    opened: 0,
    lockedUntilMs: new Map(),
    ...more,
  };
}

function fileOf(id: string, name: string, text: string) {
  const bytes = Buffer.from(text);
  return { id, name, bytes, sha256: hash("sha256", bytes) };
}

function accessOf(transfer: StoredTransfer, password = transfer.password) {
  return { transferId: transferIdOf(transfer, BOX), password: new Secret(password) };
}

async function read({ body }: { readonly body: AsyncIterable<Uint8Array> }): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

describe("lists", () => {
  test("have the requested fields, and links only for the recipient who asks", async () => {
    const { run, list, requests } = makeScene();
    const [entry] = (await run(list)).value ?? [];
    expect(entry).toMatchObject({
      trackingId: "t1",
      state: "active",
      sender: "anna@a.example",
      subject: "matter",
      securityMode: { is: "given", value: "ONE_TIME_PASSWORD" },
      passwordMode: "MANUAL",
      message: { is: "given" },
    });
    expect(entry?.recipients.map(({ mail }) => mail)).toEqual([BOX, "other@example.com"]);
    expect(entry?.recipients.map(({ downloadUrl }) => downloadUrl !== undefined)).toEqual([true, false]);
    const [brief] =
      (await run((client, signal) => list(client, signal, "trackingId,status(state)"))).value ?? [];
    expect(brief).toMatchObject({ trackingId: "t1", sender: undefined, recipients: [], expires: undefined });
    expect(requests.map(({ operation }) => operation)).toEqual(["token", "list", "token", "list"]);
    expect(requests.at(-1)).toMatchObject({
      address: BOX,
      fields: "trackingId,status(state)",
      clientId: CLIENT_ID,
    });
  });

  test("have pages, the latest transfer first", async () => {
    const transfers = Array.from({ length: 5 }, (_, at) => transferOf({ trackingId: `t${at}` }));
    const { run } = makeScene({ transfers, habits: { pageCap: 2 } });
    const { value } = await run(async (client, signal) => {
      const { token } = await client.obtainToken(BOX, undefined, signal);
      return Array.fromAsync(client.listReceived({ email: BOX, token }, { active: true }, () => {}, signal));
    });
    const ids = value?.map((page) => page.map(({ trackingId }) => trackingId));
    expect(ids).toEqual([["t4", "t3"], ["t2", "t1"], ["t0"]]);
  });

  test.each<[string, ServiceHabits, object]>([
    [
      "hides messages",
      { hidesMessages: true },
      { message: { is: "unknown" }, securityMode: { is: "given", value: "ONE_TIME_PASSWORD" } },
    ],
    ["has no modes", { hasNoModes: true }, { message: { is: "given" }, securityMode: { is: "unknown" } }],
  ])("of a service that %s", async (_, habits, expected) => {
    const { run, list } = makeScene({ habits });
    expect((await run(list)).value).toMatchObject([expected]);
  });

  test("are refused for other fields, if the service refuses them, and for a token that has expired", async () => {
    const { run, list } = makeScene({ habits: { refusesFields: true, tokenMs: 60_000 } });
    expect(await run(list)).toMatchObject({ code: "BAD_REQUEST" });
    expect(await run((client, signal) => list(client, signal, "status(state),trackingId"))).toMatchObject({
      value: [{ trackingId: "t1" }],
    });
    const late = await run(async (client, signal) => {
      const { token, validUntil } = await client.obtainToken(BOX, undefined, signal);
      expect(validUntil).toBeInstanceOf(Date);
      await pause(61_000);
      return client.pollReceived({ email: BOX, token }, {}, signal);
    });
    expect(late).toMatchObject({ code: "TOKEN_REFUSED" });
  });

  test("have transfers that are not active only if nobody asks for active ones, or the service ignores it", async () => {
    const transfers = [transferOf({ expiresMs: START_MS })];
    const usual = makeScene({ transfers });
    expect(await usual.run(usual.list)).toMatchObject({ value: [] });
    const other = makeScene({ transfers, habits: { ignoresActive: true } });
    expect(await other.run(other.list)).toMatchObject({ value: [{ state: "deleted_by_expiration" }] });
  });
});

describe("a transfer", () => {
  test.each(["short", "files", "both"] as const)("is opened and downloaded, with %s paths", async (paths) => {
    const transfer = transferOf({ messageRow: "file" });
    const { run, requests } = makeScene({ transfers: [transfer], habits: { paths } });
    const access = accessOf(transfer);
    const { value } = await run(async (client, signal) => {
      const files = await client.files(access, signal);
      return {
        information: await client.information(access, signal),
        files,
        checksums: await client.checksums(access, files, signal),
        zip: await read(await client.openZip(access, {}, signal)),
        one: await read(await client.openZip(access, { only: ["f1"] }, signal)),
        eml: await read(await client.openEml(access, { thresholdMegabytes: 1 }, signal)),
      };
    });
    expect(value?.information).toEqual({ totalBytes: 38, algorithm: "SHA-256" });
    expect(value?.files.map(({ name, bytes }) => [name, bytes])).toEqual([
      ["report.txt", 8],
      ["list, with comma.csv", 5],
    ]);
    const { subject, unlisted = [], missing } = value?.checksums ?? {};
    expect([subject, unlisted.map(({ name }) => name), missing]).toEqual(["matter", ["message"], []]);
    expect(value?.checksums.byFileId.get("f2")?.checksum?.value).toBe(transfer.files[1]?.sha256);
    expect(value?.zip).toBe(transfer.zip.toString());
    expect(value?.one.length).toBeLessThan(transfer.zip.length);
    expect(value?.eml).toContain("hello");
    const accepted = requests.filter(({ verdict }) => verdict === "accepted");
    expect(new Set(accepted.map(({ password }) => password))).toEqual(new Set(["Secret 1%"]));
    expect(accepted.every(({ trackingId, answered }) => trackingId === "t1" && answered === "own")).toBe(
      true,
    );
  });

  test("is resumed in the middle of a file", async () => {
    const transfer = transferOf({});
    const { run } = makeScene({ transfers: [transfer] });
    const { value } = await run(async (client, signal) => {
      const { etag } = await client.openFile(accessOf(transfer), { id: "f1", name: "" }, {}, signal);
      const resume = { offset: 3, etag: etag ?? "" };
      const download = await client.openFile(accessOf(transfer), { id: "f1", name: "" }, { resume }, signal);
      return { offset: download.offset, text: await read(download) };
    });
    expect(value).toEqual({ offset: 3, text: "eport" });
  });

  test("is deleted by wrong passwords", async () => {
    const transfer = transferOf({});
    const { run, requests } = makeScene({ transfers: [transfer], habits: { onWrong: { after: 2 } } });
    const open = (password: string) =>
      run((client, signal) => client.information(accessOf(transfer, password), signal));
    expect(await open("wrong")).toMatchObject({ code: "PASSWORD_REFUSED" });
    expect(await open("wrong")).toMatchObject({ code: "TRANSFER_DELETED" });
    expect(await open(transfer.password)).toMatchObject({ code: "TRANSFER_DELETED" });
    expect(requests.map(({ verdict }) => verdict)).toEqual(["refused", "deleted", undefined]);
    expect(transfer).toMatchObject({ state: "deleted_by_security", wrong: 2, opened: 3 });
  });

  test("is locked by wrong passwords, also for the right one, for one recipient and a time", async () => {
    const transfer = transferOf({});
    const habits = { onWrong: { after: 1, lockMs: 60_000, saysUntil: true } };
    const { run, schedule } = makeScene({ transfers: [transfer], habits });
    const open = (password: string, mail = BOX) =>
      run(async (client, signal) => {
        const access = { transferId: transferIdOf(transfer, mail), password: new Secret(password) };
        const wait = (fault: Fault) => fault.retryAfterMs;
        return client.information(access, signal).catch(wait);
      });
    expect((await open("wrong")).value).toBe(60_000);
    expect((await open(transfer.password)).value).toBeTypeOf("number");
    expect((await open(transfer.password, "other@example.com")).value).toMatchObject({ totalBytes: 38 });
    await schedule.run(schedule.nowMs + 60_000);
    expect((await open(transfer.password)).value).toMatchObject({ totalBytes: 38 });
    expect(transfer.wrong).toBe(1);
  });

  test("takes no password in the mode QUICK, and its request is marked", async () => {
    const transfer = transferOf({ securityMode: "QUICK" });
    const { run, requests } = makeScene({ transfers: [transfer] });
    const opened = await run((client, signal) => client.information(accessOf(transfer), signal));
    expect(opened).toMatchObject({ code: "BROWSER_ONLY" });
    expect(requests).toMatchObject([{ verdict: "unsupported", status: 501, errorCode: 5001 }]);
    expect(transfer.wrong).toBe(0);
  });

  test("carries its password in the link, if the sender chose none", async () => {
    const { run, list } = makeScene({ transfers: [transferOf({ isPasswordInLink: true })] });
    const [entry] = (await run(list)).value ?? [];
    expect(entry?.passwordMode).toBe("NONE");
    expect(entry?.recipients[0]?.downloadUrl?.reveal()).toContain("password=Secret+1%25");
  });
});

describe("weather", () => {
  const everywhere = (mood: Mood, more: Partial<Weather> = {}): Weather => ({ mood, share: 1, ...more });
  const SEEDS = Array.from({ length: 48 }, (_, at) => at + 1);

  test("no answer is a time-out after the client's time, in virtual time", async () => {
    const { run, service, client } = makeScene();
    service.weather = everywhere("silent", { scope: "lists" });
    const { code, ms } = await run((_, signal) => client.obtainToken(BOX, undefined, signal));
    expect(code).toBe("SERVICE_TIMEOUT");
    expect(ms).toBeGreaterThanOrEqual(TIMEOUT_MS);
    expect(ms).toBeLessThan(TIMEOUT_MS + 100);
    expect(await run((_, signal) => client.apiVersions(signal))).toMatchObject({ value: [{ major: 1 }] });
  });

  test.each<[Mood, readonly string[], Partial<Weather>?]>([
    ["away", ["SERVICE_UNREACHABLE"]],
    ["silent", ["SERVICE_TIMEOUT"]],
    ["dripping", ["SERVICE_TIMEOUT"]],
    ["failing", ["SERVER_FAULT"]],
    ["limiting", ["RATE_LIMITED", "SERVER_FAULT"], { retryAfter: "20" }],
    ["foreign", ["BAD_ANSWER", "SERVER_FAULT"]],
    ["firewall", ["ACCESS_REFUSED"]],
    ["confused", ["BAD_REQUEST", "SERVER_FAULT"]],
    ["lossy", ["CONNECTION_LOST"]],
    ["luring", ["REDIRECT_REFUSED"]],
  ])("%s: a list and a transfer get faults of it", async (mood, codes, more) => {
    const seen = new Set<string | undefined>();
    for (const seed of SEEDS) {
      const transfer = transferOf({});
      const { run, service, requests, client, network } = makeScene({ transfers: [transfer], seed });
      network.onStray = (origin) => seen.add(origin);
      const token = (await run((_, signal) => client.obtainToken(BOX, undefined, signal))).value?.token;
      service.weather = everywhere(mood, more);
      const address = { email: BOX, token: token ?? new Secret("none") };
      const fields = WANTED_FIELDS;
      seen.add((await run((_, signal) => client.pollReceived(address, { fields }, signal))).code);
      seen.add((await run((_, signal) => client.files(accessOf(transfer), signal))).code);
      for (const { mood: met, answered } of requests.slice(1)) {
        expect([met, answered !== undefined]).toEqual([mood, true]);
      }
    }
    expect([...seen].toSorted()).toEqual(codes.toSorted());
  });

  test("limiting: the service's own refusal says how long to wait", async () => {
    const { run, service } = makeScene();
    service.weather = everywhere("limiting", { retryAfter: "20" });
    const address = { email: BOX, token: new Secret("token") };
    const poll = (client: ServicePort, signal: AbortSignal) =>
      client.pollReceived(address, {}, signal).catch((fault: Fault) => fault.retryAfterMs);
    expect((await run(poll)).value).toBe(20_000);
  });

  test("lossy: an answer may be lost after the service has counted a wrong password, or before", async () => {
    const counts = new Set<number>();
    for (const seed of SEEDS) {
      const transfer = transferOf({});
      const { run, service, answered } = makeScene({ transfers: [transfer], seed });
      service.weather = everywhere("lossy");
      await run((client, signal) => client.information(accessOf(transfer, "wrong"), signal));
      expect(answered).toMatchObject([{ answered: "none" }]);
      counts.add(transfer.wrong);
    }
    expect(counts).toEqual(new Set([0, 1]));
  });

  test("lossy and silent: a file ends in its middle", async () => {
    for (const [mood, code] of [
      ["lossy", "CONNECTION_LOST"],
      ["silent", "SERVICE_TIMEOUT"],
    ] as const) {
      const lengths = new Set<number>();
      for (const seed of SEEDS) {
        const transfer = transferOf({});
        const { run, service } = makeScene({ transfers: [transfer], seed });
        service.weather = everywhere(mood, { scope: "transfers" });
        let length = -1;
        const end = await run(async (client, signal) => {
          const { body } = await client.openFile(accessOf(transfer), { id: "f1", name: "" }, {}, signal);
          length = 0;
          for await (const chunk of body) length += chunk.length;
        });
        expect(end.code).toBe(code);
        lengths.add(length);
      }
      expect(lengths.size).toBeGreaterThan(1);
      expect(Math.max(...lengths)).toBeLessThan(8);
    }
  });

  test.each<[Mood, readonly string[]]>([
    ["forgetful", ["0", "1 2 given given"]],
    ["cutting", ["BAD_ANSWER"]],
    ["stripping", ["1 0 given given", "1 2 given given", "1 2 given unknown", "1 2 unknown given"]],
  ])("%s: lists differ", async (mood, expected) => {
    const seen = new Set<string>();
    for (const seed of SEEDS) {
      const { run, service, list } = makeScene({ seed });
      service.weather = everywhere(mood);
      const { value, code } = await run(list);
      const facts = value?.map(
        ({ recipients, securityMode, message }) => `1 ${recipients.length} ${securityMode.is} ${message.is}`,
      );
      seen.add(code ?? (facts?.join() || "0"));
    }
    expect([...seen].toSorted()).toEqual(expected);
  });

  test("lying: sizes, bytes and checksums differ from what the sender sent", async () => {
    const seen = new Set<string>();
    for (const seed of SEEDS) {
      const transfer = transferOf({});
      const { run, service } = makeScene({ transfers: [transfer], seed });
      service.weather = everywhere("lying");
      const access = accessOf(transfer);
      const { value } = await run(async (client, signal) => {
        const files = await client.files(access, signal);
        const csv = await client.checksums(access, files, signal);
        const text = await read(await client.openFile(access, { id: "f1", name: "" }, {}, signal));
        return { file: files[0], text, sum: csv.byFileId.get("f1")?.checksum?.value };
      });
      const { sha256 } = transfer.files[0] as { sha256: string };
      expect([value?.sum === sha256, value?.text === "a report"]).toEqual([false, false]);
      seen.add(`${value?.file?.bytes === 8} ${value?.file?.checksum === sha256}`);
      seen.add(`bytes ${Math.sign((value?.text.length ?? 0) - 8)}`);
    }
    const lies = ["bytes -1", "bytes 0", "bytes 1", "false true", "true false"];
    expect([...seen].toSorted()).toEqual(lies);
  });

  test("a damaged file has other bytes", async () => {
    const transfer = transferOf({});
    const { run, service } = makeScene({ transfers: [transfer] });
    service.damaged.add("f1");
    const open = (id: string) =>
      run(async (client, signal) =>
        read(await client.openFile(accessOf(transfer), { id, name: "" }, {}, signal)),
      );
    expect((await open("f1")).value).toBe("xxxxxxxx");
    expect((await open("f2")).value).toBe("a,b,c");
  });
});

describe("the network", () => {
  test("a request arrives though its process has died, and nobody gets the answer", async () => {
    const transfer = transferOf({});
    const { process, schedule, client, requests, answered } = makeScene({ transfers: [transfer], seed: 3 });
    const { signal } = new AbortController();
    void process.run(() => client.information(accessOf(transfer, "wrong"), signal));
    process.kill();
    await schedule.run(schedule.nowMs + 60_000);
    expect(transfer.wrong).toBe(1);
    expect([requests.length, answered.length, requests[0]?.answered]).toEqual([1, 0, undefined]);
  });

  test("a process that stands still gets its answer afterwards", async () => {
    const { process, run, schedule, requests } = makeScene({ seed: 3 });
    const { value, ms } = await run((client, signal) => {
      const asked = client.apiVersions(signal);
      process.frozenUntilMs = schedule.nowMs + 60_000;
      return asked;
    });
    expect(value).toEqual([{ major: 1, minor: 13 }]);
    expect(ms).toBe(60_000);
    expect(requests[0]?.atMs).toBeLessThan(START_MS + 100);
  });

  test("an abort ends a request at once, and the service still gets what was sent", async () => {
    const { run, schedule, requests } = makeScene({ seed: 3 });
    const stop = new AbortController();
    const { code, ms } = await run((client) => {
      const asked = client.apiVersions(stop.signal);
      stop.abort();
      return asked;
    });
    expect([code, ms]).toEqual(["STOPPED", 0]);
    await schedule.run(schedule.nowMs + 60_000);
    expect(requests).toMatchObject([{ answered: "none" }]);
  });

  test("another spelling of the origin leads to the service, and a foreign origin is reported", async () => {
    const spelling = makeScene({ baseUrl: `${URL_OF_SERVICE}./` });
    expect((await spelling.run((client, signal) => client.apiVersions(signal))).value).toHaveLength(1);
    expect(spelling.requests[0]?.origin).toBe(`${URL_OF_SERVICE}.`);
    const foreign = makeScene({ baseUrl: "https://elsewhere.example" });
    const strays: string[] = [];
    foreign.network.onStray = (origin, { path }) => void strays.push(`${origin}${path}`);
    expect(await foreign.run((client, signal) => client.apiVersions(signal))).toMatchObject({
      code: "SERVICE_UNREACHABLE",
    });
    expect(strays).toEqual(["https://elsewhere.example/api/status"]);
  });

  test("a client that is closed ends its requests", async () => {
    const { run, service } = makeScene({ seed: 3 });
    service.weather = { mood: "silent", share: 1 };
    const end = await run(async (client, signal) => {
      const asked = client.apiVersions(signal).catch((fault: Fault) => fault.code);
      await client.close();
      return [await asked, await client.apiVersions(signal).catch((fault: Fault) => fault.code)];
    });
    expect(end).toMatchObject({ value: ["CONNECTION_LOST", "CONNECTION_LOST"], ms: 5_000 });
  });

  test("the same seed gives the same requests at the same times", async () => {
    const times = async () => {
      const { run, list, requests } = makeScene({ seed: 9 });
      await run(list);
      return requests.map(({ atMs, operation }) => `${atMs} ${operation}`);
    };
    expect(await times()).toEqual(await times());
  });
});
