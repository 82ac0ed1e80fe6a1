/** What docs/consuming.md tells consumers is what they get: its examples are run, and its names are the program's. */
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Secret } from "../../../src/base/secret.ts";
import { signBody } from "../../../src/base/signed-post.ts";
import { deliveryOf } from "../../../src/handoff/delivery.ts";
import { environmentOf, formatBody } from "../../../src/handoff/steps.ts";
import { formatManifest } from "../../../src/model/manifest.ts";
import { findProgram } from "../../support/debian.ts";
import { announced } from "../../support/handoff.ts";
import { makeFolder, runCommand } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { ROOT } from "../../support/root.ts";

const page = readFileSync(join(ROOT, "docs/consuming.md"), "utf8");
const SECRET = "Quiet+River%17 ä";
const LISTED = { recipients: { to: ["m"], cc: [] }, passwordMode: "MANUAL" };
const end = makeRecord({ sender: "änne@example.org", folder: "m/t1", ...LISTED });
const delivery = announced(deliveryOf("NAME~1", end));
const body = formatBody(delivery);
const signature = signBody(new Secret(SECRET), body, Date.now());
const old = signBody(new Secret(SECRET), body, Date.now() - 3_600_000);

const CALLS = [
  ["genuine", signature, body],
  ["forged", signature, `${body} `],
  ["forged", signature.replace(/.$/, (last) => (last === "0" ? "1" : "0")), body],
  ["forged", signature.replace(/^t=\d/, "t=3"), body],
  ["forged", old, body],
  ["forged", "", body],
] as const;

test("the signature is checked in a shell", { tags: ["system"] }, async () => {
  const openssl = await findProgram("openssl", ["openssl"]);
  const file = join(await makeFolder(), "body");
  for (const [verdict, header, sent] of CALLS) {
    await writeFile(file, sent);
    const env = {
      SIGNATURE: header,
      SECRET,
      BODY_FILE: file,
      PATH: `${join(openssl.path, "..")}:${process.env["PATH"]}`,
    };
    const { stdout } = await runCommand("sh", ["-eu", "-c", example("sh")], { env });
    expect([stdout.trim(), header]).toEqual([verdict, header]);
  }
});

test("the signature is checked in Python", { tags: ["system"] }, async () => {
  const python = await findProgram("python3", ["python3-minimal", "libpython3-stdlib"]);
  const code = `${example("python")}\nimport json, sys\nfor s, b in json.load(sys.stdin): print("genuine" if is_genuine(${JSON.stringify(SECRET)}, s, b.encode()) else "forged")`;
  const input = JSON.stringify(CALLS.map(([, header, sent]) => [header, sent]));
  const { stdout, stderr } = await runCommand(python.path, ["-c", code], { input });
  expect([stdout.trim().split("\n"), stderr]).toEqual([CALLS.map(([verdict]) => verdict), ""]);
});

test("every variable of the command and every key of the webhook is explained", () => {
  const variables = [...page.matchAll(/^\| `(INLET_\w+)` \|/gm)].map(([, name]) => name);
  expect(variables.toSorted()).toEqual(Object.keys(environmentOf(delivery, "/srv/inbox")).toSorted());
  const shown = JSON.parse(/^\{"version"[^`]*\}$/m.exec(page)?.[0].replaceAll("\n", "") ?? "{}");
  expect(Object.keys(shown)).toEqual(Object.keys(JSON.parse(body)));
});

test("every key of the manifest is explained", () => {
  const released = { by: "anna", at: "2026-03-01T08:00:00Z", reason: "SIZE_MISMATCH", message: "too few" };
  const record = makeRecord({ expires: "2026-04-01T08:00:00Z", released, ...LISTED });
  const messageFile = { name: "message.eml", size: 1, sha256: "0" } as const;
  const messageRow = { originalName: "message", compared: "none" } as const;
  const sent = { subject: "Order", message: "present", messageFile, messageRow, files: [] } as const;
  const contents = { ...sent, missing: [], unpacked: [] };
  const manifest = [...formatManifest(record, "NAME", contents)].join("");
  const table = page.slice(page.indexOf("## The manifest"), page.indexOf("`message.eml` contains"));
  const explained = table.split("\n").flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)]);
  expect(explained.map(([, key]) => key).toSorted()).toEqual(Object.keys(JSON.parse(manifest)).toSorted());
});

function example(language: string): string {
  return (
    new RegExp(`\`\`\`${language}\n([^]*?)\n\`\`\``).exec(
      page.slice(page.indexOf("## Call a webhook")),
    )?.[1] ?? ""
  );
}
