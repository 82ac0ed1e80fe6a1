/** What ships for containers fits the image and the program: paths, users, secrets, and configurations that are valid. */
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { loadSettings } from "../../../src/config/load.ts";
import { placeSecrets, readCompose } from "../../support/manifests.ts";
import { makeFolder } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
const IMAGE = `inlet:${packageJson.version}`;

describe.each([
  ["config/compose.sidecar.yaml", "127.0.0.1:8460:8460"],
  ["config/compose.fleet.yaml", "127.0.0.1:8460-8462:8460"],
])("%s", (file, published) => {
  // Compose cannot write a file into a container whose root is read-only: it has to be one that is mounted.
  const { compose, configuration } = readCompose(file);
  const { inlet, ...others } = compose.services;

  test("holds a valid configuration", async () => {
    const settings = await load(configuration);
    expect([settings.inbox, settings.work]).toEqual(["/srv/inbox", "/srv/inbox/.inlet"]);
    expect(settings.queue === "embedded").toBe(others["redis"] === undefined);
    expect(settings.warnings).toEqual([]);
  });

  test("gives every secret that the configuration names, from a file", () => {
    const named = [...configuration.matchAll(/\/run\/secrets\/([\w-]+)/g)].map(([, name]) => name);
    expect(inlet?.secrets?.toSorted()).toEqual(named.toSorted());
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
      tmpfs: ["/run/inlet:mode=0700,uid=1000,gid=1000"],
    });
    expect(Object.keys(compose.volumes)).toEqual(expect.arrayContaining(["inbox", "state"]));
    expect(volumesOfImage()).toEqual(["/etc/inlet", "/srv/inbox", "/var/lib/inlet"]);
  });

  test("publishes the console for this machine only, with a port for each replica", async () => {
    expect(inlet?.ports).toEqual([published]);
    const { http } = await load(configuration);
    expect(http).toMatchObject({ listen: { host: "0.0.0.0", port: 8460 }, hosts: ["inlet"] });
    const [, first = "", last = first] = /^127\.0\.0\.1:(\d+)(?:-(\d+))?:8460$/.exec(published) ?? [];
    expect(Number(last) - Number(first) + 1).toBe(inlet?.deploy?.replicas ?? 1);
  });
});

test("the image is of the Node that the tests run on, pinned by its digest", () => {
  const [, base = ""] = /^ARG NODE_IMAGE=(.*)$/m.exec(dockerfile) ?? [];
  const [name, digest] = base.split("@");
  expect(name).toBe(`docker.io/library/node:${packageJson.devDependencies.node}-bookworm-slim`);
  expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
  const stages = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, from]) => from);
  expect(stages).toEqual([...stages.slice(0, -1).fill(`$\{NODE_IMAGE}`), "scratch"]);
});

function volumesOfImage(): string[] {
  return JSON.parse(/^VOLUME (.*)$/m.exec(dockerfile)?.[1] ?? "[]");
}

async function load(text: string) {
  const folder = await makeFolder();
  const path = join(folder, "inlet.yaml");
  await writeFile(path, await placeSecrets(text, folder), { mode: 0o600 });
  return loadSettings({ path, env: { STATE_DIRECTORY: "/var/lib/inlet" } });
}
