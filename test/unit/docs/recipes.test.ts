/**
 * The parts of docs/recipes.md that cannot be run here: Debian has no PowerShell, no Camel and no NiFi. Names and patterns
 * are checked.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { formatManifest } from "../../../src/model/manifest.ts";
import { findProgram } from "../../support/debian.ts";
import { readPage } from "../../support/pages.ts";
import { runCommand } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { ROOT } from "../../support/root.ts";

const page = readPage("docs/recipes.md");
const example = (name: string) => readFileSync(join(ROOT, "examples/consumers", name), "utf8");

test("the script for PowerShell uses existing keys of the manifest", () => {
  const file = { name: "a", originalName: "a", size: 1, sha256: "0", verified: true };
  const messageFile = { name: "message.eml", size: 1, sha256: "0" } as const;
  const contents = { message: "present", messageFile, files: [file] } as const;
  const manifest = JSON.parse([...formatManifest(makeRecord({}), "NAME", contents)].join(""));
  const script = example("take-transfers.ps1");
  const keys = [...script.matchAll(/(?:\$transfer|ConvertFrom-Json\))\.(\w+)/g)].map(([, key]) => key);
  expect(new Set(keys)).toEqual(new Set(["files", "messageFile", "deliveryId"]));
  for (const key of keys) expect(manifest).toHaveProperty(key ?? "");
  for (const [, key = ""] of script.matchAll(/\$file\.(\w+)/g)) expect(file).toHaveProperty(key);
});

describe("the route for Camel", () => {
  /** Of the `file` component, by the catalogue of Camel 4; and who uses them. */
  const OPTIONS: Readonly<Record<string, "from" | "to" | "both">> = {
    antExclude: "from",
    antInclude: "from",
    autoCreate: "both",
    directoryMustExist: "from",
    fileExist: "to",
    fileName: "both",
    idempotentEager: "from",
    idempotentKey: "from",
    idempotentRepository: "from",
    noop: "from",
    readLock: "from",
    recursive: "from",
  };

  test("is well-formed, and uses options that there are, each of which the page explains", {
    tags: ["system"],
  }, async () => {
    const python = await findProgram("python3", ["python3-minimal", "libpython3-stdlib"]);
    const parse =
      "import json,sys,xml.etree.ElementTree as E\nprint(json.dumps([[e.tag,e.get('uri')] for e in E.parse(sys.argv[1]).iter() if e.get('uri')]))";
    const path = join(ROOT, "examples/consumers/camel-route.xml");
    const { stdout, stderr } = await runCommand(python.path, ["-c", parse, path]);
    expect(stderr).toBe("");
    const endpoints = (JSON.parse(stdout) as [string, string][]).filter(([, uri]) => uri.startsWith("file:"));
    expect(endpoints).toHaveLength(2);
    for (const [tag, uri] of endpoints) {
      const [folder, query = ""] = uri.split("?");
      expect(folder).toBe("file:/srv/inbox");
      for (const option of query.split("&").map((it) => it.split("=")[0] ?? "")) {
        expect(["both", tag.endsWith("from") ? "from" : "to"], option).toContain(OPTIONS[option]);
        if (tag.endsWith("from")) expect(page).toContain(`\`${option}`);
      }
    }
    expect(endpoints[1]?.[1]).toMatch(/fileName=\$\{file:name\}\.imported&/);
    expect(page).toContain("acknowledgement: transfer.json.imported");
  });
});

test("the filters for NiFi take manifests of delivered folders, and nothing of the work folder", () => {
  const value = (property: string) =>
    new RegExp(`^\\| ${property} \\| \`(.*)\` \\|$`, "m").exec(page)?.[1]?.replaceAll("\\|", "|") ?? "";
  const file = new RegExp(`^(?:${value("File Filter")})$`);
  expect(["transfer.json", "transferxjson", "a.transfer.json"].map((name) => file.test(name))).toEqual([
    ...[true, false, false],
  ]);
  const path = new RegExp(`^(?:${value("Path Filter")})$`);
  const folders = [
    "orders@example.com/anna@supplier.example/t1",
    ".inlet-of-a-sender/t1",
    ".inlet",
    ".inlet/staging/x",
  ];
  expect(folders.map((folder) => path.test(folder))).toEqual([true, true, false, false]);
});
