/** What ships for containers fits the image and the program: paths, users, secrets, and configurations that are valid. */
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import packageJson from "../../../package.json" with { type: "json" };
import { loadSettings } from "../../../src/config/load.ts";
import { makeFolder } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

const dockerfile = read("Dockerfile");
const IMAGE = `inlet:${packageJson.version}`;
const HEALTH = ["/usr/local/bin/node", "/opt/inlet/bin/inlet.cjs", "status", "--health"];

describe.each(["config/compose.sidecar.yaml", "config/compose.fleet.yaml"])("%s", (file) => {
  const compose = parse(read(file));
  const { inlet, ...others } = compose.services;
  // Compose cannot write a file into a container whose root is read-only: it has to be one that is mounted.
  const settingsFile = join("config", compose.configs.inlet.file);
  const settingsText = read(settingsFile);

  test("holds a valid configuration", async () => {
    const settings = await load(settingsText);
    expect([settings.inbox, settings.work]).toEqual(["/srv/inbox", "/srv/inbox/.inlet"]);
    expect(settings.queue === "embedded").toBe(others.redis === undefined);
    expect(settings.warnings).toEqual([]);
  });

  test("gives every secret that the configuration names, from a file", () => {
    const named = [...settingsText.matchAll(/\/run\/secrets\/([\w-]+)/g)].map(([, name]) => name);
    expect(inlet.secrets.toSorted()).toEqual(named.toSorted());
    for (const name of named) expect(compose.secrets[name ?? ""]).toEqual({ file: `./secrets/${name}` });
  });

  test("runs the image as it is meant to be run", () => {
    expect(inlet).toMatchObject({
      image: IMAGE,
      read_only: true,
      user: "1000:1000",
      cap_drop: ["ALL"],
      configs: [{ source: "inlet", target: "/etc/inlet/inlet.yaml" }],
      volumes: ["inbox:/srv/inbox", "state:/var/lib/inlet"],
    });
    expect(Object.keys(compose.volumes)).toEqual(expect.arrayContaining(["inbox", "state"]));
    expect(volumesOfImage()).toEqual(["/etc/inlet", "/srv/inbox", "/var/lib/inlet"]);
  });
});

describe("config/kubernetes.yaml", () => {
  const documents = parseAllDocuments(read("config/kubernetes.yaml")).map((document) => document.toJS());
  const [configMap, secret, ...others] = documents;
  const { template } = others.at(-1).spec;
  const [inlet, files] = template.spec.containers;

  test("holds a valid configuration, whose secrets are mounted", async () => {
    const text: string = configMap.data["inlet.yaml"];
    expect((await load(text)).inbox).toBe("/srv/inbox/received");
    expect(files.command).toContain("/srv/inbox/received");
    const mounted = inlet.volumeMounts.find(({ name }: { name: string }) => name === "secrets").mountPath;
    const named = [...text.matchAll(/\/etc\/inlet-secrets\/([\w-]+)/g)].map(([, name]) => name);
    expect(Object.keys(secret.stringData)).toEqual(named);
    for (const [path] of text.matchAll(/\/etc\/inlet-[\w/-]+/g))
      expect(path.startsWith(`${mounted}/`)).toBe(true);
  });

  test("mounts every volume of the image, and every claim is there", () => {
    const paths = inlet.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
    expect(paths).toEqual(expect.arrayContaining(volumesOfImage()));
    const claims = template.spec.volumes.flatMap(
      (volume: { persistentVolumeClaim?: { claimName: string } }) =>
        volume.persistentVolumeClaim?.claimName ?? [],
    );
    const made = others.filter(({ kind }) => kind === "PersistentVolumeClaim");
    expect(made.map(({ metadata }) => metadata.name)).toEqual(claims);
    const names = template.spec.volumes.map(({ name }: { name: string }) => name);
    for (const { name } of [...inlet.volumeMounts, ...files.volumeMounts]) expect(names).toContain(name);
  });

  test("runs it without root, on a read-only root, one at a time, and asks the program itself for its health", () => {
    expect(inlet).toMatchObject({
      image: IMAGE,
      securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      livenessProbe: { exec: { command: [...HEALTH, "alive"] } },
    });
    expect(template.spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      fsGroup: 1000,
    });
    expect(others.at(-1).spec).toMatchObject({ replicas: 1, strategy: { type: "Recreate" } });
  });
});

test("the image is of the Node that the tests run on", () => {
  expect(dockerfile).toContain(`node:${packageJson.devDependencies.node}-bookworm-slim`);
});

function volumesOfImage(): string[] {
  return JSON.parse(/^VOLUME (.*)$/m.exec(dockerfile)?.[1] ?? "[]");
}

/** With secrets that are there: each named file stands below a folder of this test. */
async function load(text: string) {
  const folder = await makeFolder();
  const named = [...text.matchAll(/file: (\/[\w/-]+)/g)].map(([, path]) => path ?? "");
  const secrets = named.map((path) => [path, join(folder, path.replaceAll("/", "-"))] as const);
  for (const [, here] of secrets) await writeFile(here, "c".repeat(60), { mode: 0o600 });
  const path = join(folder, "inlet.yaml");
  const changed = secrets.reduce((all, [there, here]) => all.replace(there, here), text);
  await writeFile(path, changed, { mode: 0o600 });
  return loadSettings({ path, env: { STATE_DIRECTORY: "/var/lib/inlet" } });
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}
