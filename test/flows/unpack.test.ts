/** Received ZIP files are unpacked before the delivery, or delivered as they are with the reason. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callCommand } from "../support/command.ts";
import { install } from "../support/installation.ts";
import { runCommand, runProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { writeZip, type ZipEntry } from "../support/zip-writer.ts";

const GOOD = [
  { name: "a.txt", content: "first" },
  { name: "docs/", content: "" },
  { name: "docs/a.txt", content: "second" },
  { name: "docs/inner.zip", content: writeZip([{ name: "deep.txt", content: "deep" }]) },
];

describe("a received archive", () => {
  test("is unpacked beside it, and every file is in manifest and sums", async () => {
    const { folder, manifest, config, inbox } = await deliver({ unpack: "beside" }, GOOD);
    expect(list(folder)).toEqual([
      "SHA256SUMS",
      "data.zip",
      "data_a.txt",
      "data_docs_a.txt",
      "data_docs_inner.zip",
      "note.txt",
      "transfer.json",
    ]);
    expect(readFileSync(join(folder, "data_docs_a.txt"), "utf8")).toBe("second");
    const unpacked = manifest.files.filter(({ from }) => from !== undefined);
    expect(unpacked.map(({ name, originalName, from }) => [name, originalName, from])).toEqual([
      ["data_a.txt", "a.txt", "data.zip"],
      ["data_docs_a.txt", "docs/a.txt", "data.zip"],
      ["data_docs_inner.zip", "docs/inner.zip", "data.zip"],
    ]);
    expect(manifest.unpacked).toMatchObject([{ name: "data.zip", isDelivered: true, files: 3 }]);
    expect(await runCommand("sha256sum", ["--quiet", "-c", "SHA256SUMS"], { cwd: folder })).toMatchObject({
      exitCode: 0,
    });
    expect((await runProgram(["verify", inbox, "--config", config])).exitCode).toBe(0);
  });

  test("is replaced by its files if the operator wants that, before the check", async () => {
    const script = 'cd "$1" && test -e data_a.txt && ! test -e data.zip';
    const check = { command: ["sh", "-c", script, "sh", "{folder}"] };
    const { folder, manifest } = await deliver({ unpack: "instead" }, GOOD, { check });
    expect(list(folder)).not.toContain("data.zip");
    expect(manifest.unpacked).toMatchObject([{ originalName: "data.zip", isDelivered: false, files: 3 }]);
  });

  test("is unpacked into single files", async () => {
    const { inbox } = await deliver({ unpack: "instead", deliver: "files" }, GOOD, {
      defaults: { layout: "flat" },
    });
    expect(list(join(inbox, "flat"))).toEqual([
      "t1_data_a.txt",
      "t1_data_docs_a.txt",
      "t1_data_docs_inner.zip",
      "t1_note.txt",
    ]);
  });

  test("is left alone unless unpacking is configured", async () => {
    const { folder, manifest } = await deliver({}, GOOD);
    expect(list(folder)).toEqual(["SHA256SUMS", "data.zip", "note.txt", "transfer.json"]);
    expect(manifest.unpacked).toBeUndefined();
  });

  test.each<[string, readonly ZipEntry[] | Buffer, RegExp, Record<string, unknown>?]>([
    ["leads out of its folder", [{ name: "../a.txt", content: "x" }], /leads out of its folder/],
    ["has an absolute path", [{ name: "/etc/passwd", content: "x" }], /leads out of its folder/],
    [
      "has too many files",
      Array.from({ length: 30 }, (_, at) => ({ name: `${at}`, content: "x" })),
      /would have more than 20 files/,
      { limits: { maxFiles: 20, minFreeSpace: "1KiB" } },
    ],
  ])("that %s is delivered as it is, with the reason", async (_, zip, reason, keys = {}) => {
    const { folder, manifest, log } = await deliver({ unpack: "instead" }, zip, keys);
    expect(list(folder)).toEqual(["SHA256SUMS", "data.zip", "note.txt", "transfer.json"]);
    expect(manifest.unpacked).toMatchObject([
      { name: "data.zip", isDelivered: true, files: 0, refused: expect.stringMatching(reason) },
    ]);
    expect(log).toContain("delivering an archive that was not unpacked");
  });

  test.each([
    [{ maxFiles: 1 }, "more than 1 file"],
    [{ maxTransferSize: "1KiB" }, "and 1024 are allowed"],
  ])(
    "of a released transfer that exceeds %j alone is delivered as it is, and the reason names that limit",
    async (limits, reason) => {
      const files = [
        { name: "data.zip", base64: writeZip(GOOD).toString("base64") },
        ...[1, 2, 3].map((number) => ({ name: `${number}.txt`, text: "x".repeat(1024) })),
      ];
      const { config, inbox } = await install(
        { transfers: [transferPlan({ trackingId: "t1", files })] },
        {
          handoff: { unpack: "instead" },
          defaults: { layout: "{trackingId}" },
          limits: { ...limits, minFreeSpace: "1KiB" },
        },
      );
      expect((await callCommand(["once", "--config", config])).outcome).toBe("attention");
      await callCommand(["release", "t1", "--yes", "--config", config]);
      await callCommand(["once", "--config", config]);
      const manifest = JSON.parse(
        readFileSync(join(inbox, "t1", "transfer.json"), "utf8"),
      ) as UnpackedManifest;
      expect(manifest.unpacked).toMatchObject([{ files: 0, refused: expect.stringContaining(reason) }]);
    },
  );
});

interface UnpackedManifest {
  readonly files: readonly { name: string; originalName: string; from?: string }[];
  readonly unpacked?: readonly unknown[];
}

async function deliver(
  handoff: Record<string, unknown>,
  zip: readonly ZipEntry[] | Buffer,
  keys: Record<string, unknown> = {},
) {
  const bytes = Buffer.isBuffer(zip) ? zip : writeZip(zip as readonly ZipEntry[]);
  const files = [
    { name: "data.zip", base64: bytes.toString("base64") },
    { name: "note.txt", text: "hello" },
  ];
  const { config, inbox } = await install(
    { transfers: [transferPlan({ trackingId: "t1", files })] },
    { handoff, defaults: { layout: "{trackingId}" }, ...keys },
  );
  const { outcome, stdout, stderr } = await callCommand(["once", "--config", config]);
  expect(outcome).toBe("fine");
  const folder = join(inbox, "t1");
  const manifest = (
    handoff["deliver"] === "files" ? {} : JSON.parse(readFileSync(join(folder, "transfer.json"), "utf8"))
  ) as UnpackedManifest;
  return { folder, inbox, config, manifest, log: stdout + stderr };
}

function list(folder: string): string[] {
  return readdirSync(folder).toSorted();
}
