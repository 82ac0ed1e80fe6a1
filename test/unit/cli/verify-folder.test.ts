import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { checkFolder, findDeliveries, manifestInside } from "../../../src/cli/verify.ts";
import { type Contents, formatManifest, formatSums } from "../../../src/model/manifest.ts";
import { makeFolder, runCommand } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";

const FILES = { "a.txt": "Hello", "Größe, 2.csv": "1;2\n" };

describe("a delivered folder", () => {
  test("tells changed content, another size, what is missing and what is extra apart", async () => {
    const folder = await deliver({ "message.eml": "Subject: x" });
    await writeFile(join(folder, "a.txt"), "Hallo");
    await truncate(join(folder, "Größe, 2.csv"), 2);
    await rm(join(folder, "message.eml"));
    await writeFile(join(folder, "new.txt"), "new");
    await writeFile(join(folder, "done"), "");
    await mkdir(join(folder, "sub"));
    expect(await check(folder)).toEqual([
      "differs",
      {
        "a.txt": "changed: has other content",
        "Größe, 2.csv": "changed: has 2 bytes instead of 4",
        "message.eml": "missing",
        "new.txt": "extra: is not in the manifest",
        done: "extra: is not in the manifest; it is empty, as a marker is (see --allow)",
        sub: "extra: is a folder",
      },
    ]);
  });

  test("has the message as the manifest says, in size and content", async () => {
    const folder = await deliver({ "message.eml": "Subject: x" });
    const message = async () => (await check(folder))[1]["message.eml"];
    await writeFile(join(folder, "message.eml"), "Subject: xy");
    expect(await message()).toBe("changed: has 11 bytes instead of 10");
    await writeFile(join(folder, "message.eml"), "Subject: y");
    expect(await message()).toBe("changed: has other content");
    await alter(folder, (manifest) => void delete manifest.messageFile);
    expect(await message()).toBe("changed: transfer.json lacks it");
  });

  test("must match the sender's own checksum, the manifest and the sums", async () => {
    const ofSender = await deliver();
    await alter(ofSender, ({ files: [first, second] }) => {
      Object.assign(first, {
        algorithm: "SHA-1",
        checksum: createHash("sha1").update("Hello").digest("hex"),
      });
      Object.assign(second, { algorithm: "SHA-1", checksum: "0".repeat(40) });
    });
    const disagreeing = await deliver();
    await alter(disagreeing, ({ files }) => {
      files[1].sha256 = "0".repeat(64);
    });
    const lacking = await deliver();
    await alter(lacking, (manifest) => void manifest.files.pop());
    const short = await deliver();
    const [first = ""] = (await readFile(join(short, "SHA256SUMS"), "utf8")).split("\n");
    await writeFile(join(short, "SHA256SUMS"), `${first}\n`);
    for (const [folder, why] of [
      [ofSender, "has other content"],
      [disagreeing, "transfer.json and SHA256SUMS disagree on it"],
      [lacking, "transfer.json lacks it"],
      [short, "SHA256SUMS lacks it"],
    ] as const) {
      const expected = { "a.txt": "ok", "Größe, 2.csv": `changed: ${why}` };
      expect(await check(folder)).toEqual(["differs", expected]);
    }
  });

  test("does not lead elsewhere by links, and a pipe does not block", async () => {
    const folder = await deliver();
    await writeFile(join(folder, "..", "outside"), "Hello");
    await rm(join(folder, "a.txt"));
    await symlink("../outside", join(folder, "a.txt"));
    await rm(join(folder, "Größe, 2.csv"));
    expect(await runCommand("mkfifo", [join(folder, "Größe, 2.csv")])).toMatchObject({ exitCode: 0 });
    expect(await check(folder)).toEqual([
      "differs",
      { "a.txt": "changed: is a link", "Größe, 2.csv": "changed: is not a plain file" },
    ]);
    await rm(join(folder, "transfer.json"));
    await symlink("/etc/passwd", join(folder, "transfer.json"));
    expect(await problemOf(folder)).toBe("transfer.json is a link");
  });

  test.each(["../secret", "/etc/hostname", "..", ".", "", "sub/../../secret", "a\0b"])(
    "whose manifest names %j is not read at all",
    async (name) => {
      const folder = await deliver();
      await alter(folder, ({ files }) => {
        files[0].name = name;
      });
      expect(await problemOf(folder)).toContain("is not a name in the folder");
    },
  );

  test.each([
    ["transfer.json", "not json", "transfer.json is not JSON"],
    ["transfer.json", '{"version":1}', "look at version"],
    ["SHA256SUMS", "nonsense\n", "line 1 of SHA256SUMS is not a sum with a name"],
    ["SHA256SUMS", `${"0".repeat(64)}  ../secret\n`, 'names "../secret"'],
    ["SHA256SUMS", undefined, "SHA256SUMS is missing"],
  ])("says what is wrong with a %s of %j", async (name, text, why) => {
    const folder = await deliver();
    await (text === undefined ? rm(join(folder, name)) : writeFile(join(folder, name), text));
    expect(await problemOf(folder)).toContain(why);
  });
});

test("a tree gives every delivered folder, passes over what begins with a dot, follows no link, and reports a folder that cannot be read", async () => {
  const tree = await makeFolder();
  for (const name of ["m/s/t1", "m/s/t2", "t3", ".inlet/staging/t4"]) {
    await mkdir(join(tree, name), { recursive: true });
    await writeFile(join(tree, name, "transfer.json"), "{}");
  }
  await mkdir(join(tree, "empty"));
  await symlink(join(tree, "m"), join(tree, "again"));
  const unreadable: string[] = [];
  const findIn = (folder: string) =>
    Array.fromAsync(
      findDeliveries(folder, undefined, (...told) => void unreadable.push(told.join(" ")), SIGNAL),
    );
  const found = await findIn(tree);
  expect(found.map(({ folder }) => folder.slice(tree.length + 1)).toSorted()).toEqual([
    "m/s/t1",
    "m/s/t2",
    "t3",
  ]);
  const gone = join(tree, "gone");
  expect([await findIn(gone), unreadable]).toEqual([[], [`${gone} ENOENT`]]);
});

/** A folder as a delivery leaves it. */
async function deliver(more: Record<string, string> = {}): Promise<string> {
  const folder = join(await makeFolder(), "t1");
  await mkdir(folder);
  for (const [name, text] of Object.entries({ ...FILES, ...more })) await writeFile(join(folder, name), text);
  const files = Object.entries(FILES).map(([name, text]) => ({
    name,
    originalName: name,
    size: Buffer.byteLength(text),
    checksum: sha256(text).toUpperCase(),
    algorithm: "SHA-256",
    sha256: sha256(text),
    verified: true,
  }));
  const text = more["message.eml"];
  const message =
    text && ({ name: "message.eml", size: Buffer.byteLength(text), sha256: sha256(text) } as const);
  const contents: Contents = message
    ? { message: "present", messageFile: message, files }
    : { message: "none", files };
  await writeFile(join(folder, "SHA256SUMS"), formatSums(contents));
  await writeFile(join(folder, "transfer.json"), formatManifest(makeRecord(), "NAME", contents));
  await chmod(folder, 0o750);
  return folder;
}

// biome-ignore lint/suspicious/noExplicitAny: a test may do anything to it.
async function alter(folder: string, change: (manifest: any) => void): Promise<void> {
  const path = join(folder, "transfer.json");
  const manifest = JSON.parse(await readFile(path, "utf8"));
  change(manifest);
  await writeFile(path, JSON.stringify(manifest));
}

async function check(
  folder: string,
  allowed: readonly string[] = [],
): Promise<[string, Record<string, string>]> {
  const { status, files } = await checkFolder(manifestInside(folder), new Set(allowed), () => {}, SIGNAL);
  const told = files.map((file) => [file.name, file.detail ? `${file.status}: ${file.detail}` : file.status]);
  return [status, Object.fromEntries(told)];
}

/** Of a damaged folder, of which no file is read. */
async function problemOf(folder: string): Promise<string | undefined> {
  const onBytes = () => expect.fail("a file was read");
  const { status, problem } = await checkFolder(manifestInside(folder), new Set(), onBytes, SIGNAL);
  expect(status).toBe("damaged");
  return problem;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
