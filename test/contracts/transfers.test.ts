import { createHash } from "node:crypto";
import { buffer, text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { fromBufferPromise } from "yauzl";
import { Fault } from "../../src/base/faults.ts";
import { Secret } from "../../src/base/secret.ts";
import type { Download } from "../../src/service/port.ts";
import { accessTo, expectFault, firstFile, openPair, SIGNAL, transferPlan } from "../support/service.ts";

describe("opening a transfer", () => {
  test("returns its size, the algorithm and its files, and sends the password encoded in the header, never in a URL", async () => {
    const { service, access, transfer, simulator } = await openPair();
    expect(await service.information(access, SIGNAL)).toEqual({ totalBytes: 13, algorithm: "SHA-256" });
    expect(await service.files(access, SIGNAL)).toEqual([
      { id: transfer.files[0]?.id, name: "a.txt", bytes: 5, checksum: sha256("Hello") },
      { id: transfer.files[1]?.id, name: "Größe, 2.csv", bytes: 8, checksum: sha256("1;2\n3;4\n") },
    ]);
    await drain(await service.openZip(access, {}, SIGNAL));
    const opened = simulator.requests().filter(({ operation }) => /info|files|zip/.test(operation ?? ""));
    expect(opened.map(({ passwordSent, status }) => [passwordSent, status])).toEqual(
      opened.map(() => ["header", 200]),
    );
    expect(opened).toHaveLength(3);
  });

  test("sends any text as a password", async () => {
    for (const password of ["100% +sure", "a&b=c?#/\\", "ümläut €", '"quoted"', "日本", "tab\tand\nline"]) {
      const { service, access } = await openPair({ transfers: [transferPlan({ password })] });
      expect((await service.information(access, SIGNAL)).totalBytes).toBe(13);
    }
  });

  test("distinguishes a wrong password, a deleted, a locked and an unknown transfer", async () => {
    const { service, access, simulator } = await openPair({
      wrongPasswords: { limit: 2, reaction: "delete" },
    });
    const wrong = { ...access, password: new Secret("wrong") };
    await expectFault(service.information(wrong, SIGNAL), "PASSWORD_REFUSED", "wait");
    await expectFault(service.files(wrong, SIGNAL), "TRANSFER_DELETED", "fatal");
    await expectFault(service.files(access, SIGNAL), "NOT_FOUND");
    const [{ trackingId } = { trackingId: "" }] = simulator.transfers();
    expect(simulator.refusedPasswords(trackingId)).toEqual(["wrong", "wrong"]);
    const unknown = { ...access, transferId: "noSuchId00" };
    await expectFault(service.files(unknown, SIGNAL), "NOT_FOUND", "fatal");
    await expectFault(service.files({ ...access, transferId: "no/such id" }, SIGNAL), "BAD_REQUEST");

    const locking = await openPair({ wrongPasswords: { limit: 1, reaction: "lock", lockSeconds: 60 } });
    await expectFault(
      locking.service.files({ ...locking.access, password: new Secret("wrong") }, SIGNAL),
      "TRANSFER_LOCKED",
      "wait",
    );
    await expectFault(locking.service.files(locking.access, SIGNAL), "TRANSFER_LOCKED");
    locking.simulator.advance(61);
    expect(await locking.service.files(locking.access, SIGNAL)).toHaveLength(2);
  });

  test("refuses to send an invalid password, or ids that would change the path; none at all is up to the service", async () => {
    const { service, access, simulator } = await openPair();
    for (const password of ["", "\ud800"]) {
      const wrong = { ...access, password: new Secret(password) };
      await expectFault(service.information(wrong, SIGNAL), "PASSWORD_UNUSABLE");
    }
    for (const transferId of ["", ".", "..", "\ud800"]) {
      await expectFault(service.files({ ...access, transferId }, SIGNAL), "BAD_REQUEST");
    }
    expect(simulator.requests()).toEqual([]);
    await expectFault(service.files({ ...access, password: undefined }, SIGNAL), "BAD_REQUEST");
    expect(simulator.requests()[0]).toMatchObject({ passwordSent: "none" });
  });

  test("refuses a file list with a repeated id", async () => {
    const { service, access, transfer, simulator } = await openPair();
    const value = transfer.files[0]?.id;
    simulator.addFault({ on: "files", does: { kind: "alter", path: "data.1.id", value } });
    await expectFault(service.files(access, SIGNAL), "BAD_ANSWER");
  });
});

describe("the checksums file", () => {
  test("is requested in the configured language, and understood", async () => {
    const { service, access } = await openPair({}, { acceptLanguage: "de-DE,de;q=0.9" });
    expect(await text((await service.openChecksums(access, SIGNAL)).body)).toMatch(/^Betreff.*\r\nDateiname/);
    const files = await service.files(access, SIGNAL);
    expect((await service.checksums(access, files, SIGNAL)).missing).toEqual([]);
  });

  test("shows missing and extra files", async () => {
    const files = [
      { name: "a", text: "1", csvChecksum: "missing" },
      { name: "b", text: "2" },
    ] as const;
    const { service, access } = await openPair({ transfers: [transferPlan({ files })] });
    const [a, b] = await service.files(access, SIGNAL);
    if (a === undefined || b === undefined) throw new Error("two files");
    expect((await service.checksums(access, [a, b], SIGNAL)).missing).toEqual([a]);
    expect((await service.checksums(access, [a], SIGNAL)).unlisted.map((row) => row.name)).toEqual(["b"]);
  });
});

describe("downloading", () => {
  test("returns a file's exact bytes, its size and its ETag, and stops at the first extra byte", async () => {
    const { service, access, transfer, simulator } = await openPair();
    const download = await service.openFile(access, firstFile(transfer), {}, SIGNAL);
    expect(download).toMatchObject({ offset: 0, totalBytes: 5 });
    expect(download.etag).toBeDefined();
    expect(await text(download.body)).toBe("Hello");
    simulator.addFault({ on: "file", does: { kind: "lengthen", bytes: 3 } });
    const long = await service.openFile(access, firstFile(transfer), { maxBytes: 5 }, SIGNAL);
    await expectFault(drain(long), "SIZE_MISMATCH", "quarantine");
  });

  test("resumes an earlier download", async () => {
    const files = [{ name: "large", generate: { bytes: 300_000 } }];
    const { service, access, transfer } = await openPair({ transfers: [transferPlan({ files })] });
    const file = firstFile(transfer);
    const first = await service.openFile(access, file, {}, SIGNAL);
    const whole = await buffer(first.body);
    const resume = { offset: 123_456, etag: first.etag ?? "" };
    const rest = await service.openFile(access, file, { resume }, SIGNAL);
    expect(rest).toMatchObject({ offset: 123_456, totalBytes: 300_000 });
    expect(Buffer.concat([whole.subarray(0, 123_456), await buffer(rest.body)]).equals(whole)).toBe(true);
  });

  test("starts over if the file has changed or ranges are ignored, and does not send a weak ETag", async () => {
    const { service, access, transfer, simulator } = await openPair();
    const file = firstFile(transfer);
    const changed = await service.openFile(access, file, { resume: { offset: 2, etag: '"other"' } }, SIGNAL);
    expect(changed.offset).toBe(0);
    expect(await text(changed.body)).toBe("Hello");
    simulator.addFault({ on: "file", does: { kind: "range", mode: "ignore" } });
    const ignored = await service.openFile(access, file, { resume: { offset: 2 } }, SIGNAL);
    expect(ignored.offset).toBe(0);
    expect(await text(ignored.body)).toBe("Hello");
    const rest = await service.openFile(access, file, { resume: { offset: 2, etag: 'W/"x"' } }, SIGNAL);
    expect(rest.offset).toBe(2);
    expect(await text(rest.body)).toBe("llo");
  });

  test("fails if the range is refused, or another part arrives", async () => {
    const { service, access, transfer, simulator } = await openPair();
    const file = firstFile(transfer);
    simulator.addFault({ on: "file", does: { kind: "range", mode: "refuse" } });
    const resume = { offset: 2 };
    for (const options of [{ resume }, { resume: { offset: 99 } }]) {
      const opening = service.openFile(access, file, options, SIGNAL);
      await expectFault(opening, "RANGE_REFUSED");
    }
  });

  test("returns all files, some, or all but some as a ZIP, optionally with the checksums file", async () => {
    for (const idListForm of ["repeat", "comma"] as const) {
      const { service, access, transfer } = await openPair(
        { transfers: [transferPlan({ files: ["a", "b", "c"].map((name) => ({ name, text: name })) })] },
        { idListForm },
      );
      const [a = "", b = ""] = transfer.files.map((file) => file.id);
      const open = async (options: object) => zipNames(await service.openZip(access, options, SIGNAL));
      expect(await open({})).toEqual(["a", "b", "c"]);
      expect(await open({ only: [a, b] })).toEqual(["a", "b"]);
      expect(await open({ except: [a, b] })).toEqual(["c"]);
      expect(await open({ includeChecksumFile: true })).toHaveLength(4);
      await expectFault(open({ only: ["nonsense"] }), "NOT_FOUND");
    }
  });

  test("returns the confidential message as an EML below a threshold, or that there is none", async () => {
    const files = [{ name: "large.bin", generate: { bytes: 2_000_000 } }];
    const { service, access } = await openPair({
      transfers: [transferPlan({ message: "For your eyes", files })],
    });
    const whole = await buffer((await service.openEml(access, {}, SIGNAL)).body);
    const small = await buffer((await service.openEml(access, { thresholdMegabytes: 0.5 }, SIGNAL)).body);
    expect(whole.length).toBeGreaterThan(2_600_000);
    expect(whole.toString("latin1")).toContain("large.bin");
    expect(small.length).toBeLessThan(500_000);
    const none = await openPair();
    await expectFault(none.service.openEml(none.access, {}, SIGNAL), "NOT_FOUND");
    await expectFault(service.openEml(access, { thresholdMegabytes: -1 }, SIGNAL), "BAD_REQUEST");
  });

  test("finds ZIP, EML and checksums at the paths of older services", async () => {
    const { service, access, simulator } = await openPair({
      oldPaths: true,
      transfers: [transferPlan({ message: "Hi" })],
    });
    const files = await service.files(access, SIGNAL);
    await drain(await service.openZip(access, {}, SIGNAL));
    await drain(await service.openEml(access, {}, SIGNAL));
    await service.checksums(access, files, SIGNAL);
    const asked = () =>
      simulator.requests().map(({ path, status }) => `${status} ${path.split("/").slice(4).join("/")}`);
    // The version of the service is asked for once.
    const found = ["zip", "eml", "checksums"].flatMap((name) => [`404 ${name}`, `200 files/${name}`]);
    expect(asked().filter((it) => it !== "200 ")).toEqual(["200 files", ...found]);
    await drain(await service.openZip(access, {}, SIGNAL));
    expect(asked().slice(-2)).toEqual(
      ["200 checksums", "200 files/zip"].slice(1).flatMap((it) => ["200 files/checksums", it]),
    );
  });

  test("requests a message with all files only once there is room for them", async () => {
    const { service, access, simulator } = await openPair({
      threshold: "refused",
      transfers: [transferPlan({ message: "Hi" })],
    });
    const open = (makeRoom: () => Promise<void>) => service.openMessage(access, { makeRoom }, SIGNAL);
    const lacksRoom = async () => {
      throw new Fault("DISK_FULL");
    };
    await expectFault(open(lacksRoom), "DISK_FULL");
    expect(simulator.totals().eml).toBe(2);
    await drain(await open(async () => {}));
    const before = simulator.totals().eml;
    await expectFault(open(lacksRoom), "DISK_FULL");
    expect(simulator.totals().eml).toBe(before);
  });

  test("frees its place when it is read to the end or cancelled", async () => {
    const files = [{ name: "large", generate: { bytes: 50_000_000 } }];
    const { service, access, transfer } = await openPair(
      { transfers: [transferPlan({ files })] },
      { maxRequests: () => 1 },
    );
    const file = firstFile(transfer);
    (await service.openFile(access, file, {}, SIGNAL)).cancel();
    await drain(await service.openFile(access, file, {}, SIGNAL));
    for await (const _chunk of (await service.openFile(access, file, {}, SIGNAL)).body) break;
    expect(await service.files(access, SIGNAL)).toHaveLength(1);
  });

  test("ends at once when it is stopped", async () => {
    const files = [{ name: "large", generate: { bytes: 50_000_000 } }];
    const { service, access, transfer } = await openPair({ transfers: [transferPlan({ files })] });
    const stop = new AbortController();
    const download = await service.openFile(access, firstFile(transfer), {}, stop.signal);
    // All buffers on the way are full by then.
    await new Promise((resolve) => setTimeout(resolve, 200));
    let chunks = 0;
    const reading = (async () => {
      for await (const _chunk of download.body) if (++chunks === 1) stop.abort();
    })();
    await expectFault(reading, "STOPPED");
    expect(chunks).toBe(1);
    await expectFault(service.files(access, AbortSignal.abort()), "STOPPED");
  });

  test("works with each recipient's own transfer-id", async () => {
    const { service, transfer } = await openPair({ transfers: [transferPlan({ cc: ["cc@example.com"] })] });
    expect(await service.files(accessTo(transfer, "cc@example.com"), SIGNAL)).toHaveLength(2);
  });
});

function sha256(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

async function drain(download: Download): Promise<void> {
  for await (const _chunk of download.body);
}

async function zipNames(download: Download): Promise<string[]> {
  const zip = await fromBufferPromise(await buffer(download.body));
  const names: string[] = [];
  for await (const entry of zip.eachEntry()) names.push(entry.fileName);
  return names;
}
