import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import packageJson from "../../../package.json" with { type: "json" };
import { loadSettings } from "../../../src/config/load.ts";
import { SCHEMA } from "../../../src/config/schema.ts";
import type { SchemaNode } from "../../../src/config/schema-nodes.ts";
import { makeFolder } from "../../support/program.ts";
import { CA } from "../../support/tls.ts";
import { CLIENT_ID, writeConfig } from "./stage.ts";

const CONFIG_FOLDER = resolve(import.meta.dirname, "../../../config");
const example = await readFile(join(CONFIG_FOLDER, "inlet.example.yaml"), "utf8");

/** With every commented key switched on; prose has a space after its #. */
const everything = example.replaceAll(/^( *)#(?=\S)/gm, "$1");

/** The same with a queue on Redis, and with either sentinels or a cluster. */
const everythingOnRedis = everything.replace("queue: embedded", "queue: rediss://redis.example.com");
const withSentinels = everythingOnRedis.replace(/^ *cluster:.*\n/m, "");
const withCluster = everythingOnRedis.replaceAll(/^ *sentinel.*\n/gm, "");

test("the example lists exactly the keys of the schema", () => {
  expect([...keysOf(parse(everything))].toSorted()).toEqual([...keysOfSchema(SCHEMA)].toSorted());
});

test("the example explains every key in a comment above it", () => {
  const lines = everything.split("\n");
  const keys = lines.flatMap((line, at) => (/^ *[a-zA-Z]+:/.test(line) ? [at] : []));
  const isExplained = (at: number): boolean => {
    const above = lines[at - 1]?.trim() ?? "";
    // Adjacent keys share a comment.
    return above.startsWith("#") || (/^[a-zA-Z]+:/.test(above) && isExplained(at - 1));
  };
  expect(keys.filter((at) => !isExplained(at)).map((at) => lines[at])).toEqual([]);
});

test("the example loads as shipped, and with every key switched on", async () => {
  for (const text of [example, withSentinels, withCluster]) {
    const folder = await makeFolder();
    const named = text.matchAll(/(?:credential: |\/etc\/inlet\/)([\w.-]+)/g);
    for (const [, name = ""] of named) {
      const secret = name.endsWith(".key") ? "-----BEGIN PRIVATE KEY-----" : CLIENT_ID;
      await writeFile(join(folder, name), name.endsWith(".pem") ? CA : secret, { mode: 0o600 });
    }
    const path = await writeConfig(text.replaceAll("/etc/inlet/", `${folder}/`));
    const env = { CREDENTIALS_DIRECTORY: folder, TRANSFER_PASSWORD: "p" };
    expect(await loadSettings({ path, env })).toMatchObject({ inbox: "/srv/inbox", warnings: [] });
  }
});

test("the example shows the default of each commented key", () => {
  const { service, redis, limits, handoff, ...top } = parse(everything);
  for (const [group, node] of [
    [top, SCHEMA],
    [redis, SCHEMA.properties.redis],
    [service, SCHEMA.properties.service],
    [limits, SCHEMA.properties.limits],
    [handoff, SCHEMA.properties.handoff],
  ] as const) {
    const defaults = Object.entries<SchemaNode>(node.properties).flatMap(([key, { default: value }]) =>
      value === undefined || ["verification", "bandwidth"].includes(key) ? [] : [[key, value]],
    );
    expect(group).toMatchObject(Object.fromEntries(defaults));
  }
});

test("the example names the schema for editors by its address, so that every copy of the example does", async () => {
  const schema = JSON.parse(await readFile(join(CONFIG_FOLDER, "inlet.schema.json"), "utf8"));
  const $id = `${packageJson.homepage}/schema/v1/inlet.schema.json`;
  expect(schema).toMatchObject({ $id, $comment: `Of Inlet ${packageJson.version}.` });
  expect(example.split("\n")[0]).toBe(`# yaml-language-server: $schema=${$id}`);
});

test("the schema describes every key", () => {
  const undescribed = [...nodesOf(SCHEMA)].filter(([, node]) => !node.description).map(([path]) => path);
  expect(undescribed).toEqual([]);
});

/** Groups that need not repeat the keys of the common one. */
const REPEATED: ReadonlySet<string> = new Set([".mailboxes.service", ".mailboxes.routes.handoff"]);

function keysOf(value: unknown, path: string = ""): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap((item) => [...keysOf(item, path)]));
  if (typeof value !== "object" || value === null) return new Set();
  return new Set(
    Object.entries(value).flatMap(([key, child]) => {
      const own = `${path}.${key}`;
      return REPEATED.has(own) ? [own] : [own, ...keysOf(child, own)];
    }),
  );
}

/** The forms of a secret are shown once, by the passwords. */
function keysOfSchema(node: SchemaNode): Set<string> {
  return new Set(
    [...nodesOf(node)]
      .map(([path]) => path)
      .filter((path) => ![...REPEATED].some((group) => path.startsWith(`${group}.`)))
      .filter(
        (path) =>
          !/^\.(service|redis|passwords|handoff|mailboxes\.handoff|notify|http)\..*\.(file|env|command)$/.test(
            path,
          ),
      ),
  );
}

function* nodesOf(node: SchemaNode, path: string = ""): Generator<[string, SchemaNode]> {
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    yield [`${path}.${key}`, child];
    yield* nodesOf(child, `${path}.${key}`);
  }
  if (node.items !== undefined) yield* nodesOf(node.items, path);
}
