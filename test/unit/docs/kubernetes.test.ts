/** The Kubernetes manifests are valid, complete, and fit the image and the program. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Container } from "kubernetes-types/core/v1.d.ts";
import { describe, expect, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { FLEET, inletOf, type Manifests, ONE_POD, podOf, readManifests } from "../../support/manifests.ts";
import { makeFolder, runCommand, runProgram } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

/** Where the types of an API are. They are generated from the specification of Kubernetes. */
const TYPES: Readonly<Record<string, string>> = {
  v1: "core/v1",
  "apps/v1": "apps/v1",
  "networking.k8s.io/v1": "networking/v1",
  "policy/v1": "policy/v1",
};

/** How long the daemon takes to stop, at most: docs/installing.md. */
const GRACE_SECONDS = 20;

describe.each([ONE_POD, FLEET])("%s", (file) => {
  const manifests = readManifests(file);
  const pods = manifests.of("Deployment").map(podOf);

  test("has only keys and values that Kubernetes knows", async () => {
    expect(await checkTypes(manifests)).toBe("");
  });

  test("mounts volumes that it contains, and no others", () => {
    for (const { containers, volumes = [] } of pods) {
      const mounts = containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name));
      expect(new Set(mounts)).toEqual(new Set(volumes.map(({ name }) => name)));
    }
    const volumes = pods.flatMap((pod) => pod.volumes ?? []);
    const named = (kind: Parameters<Manifests["of"]>[0]) => manifests.of(kind).map((it) => it.metadata?.name);
    const configMaps = volumes.flatMap(({ configMap }) => configMap?.name ?? []);
    expect(configMaps).toEqual(named("ConfigMap"));
    expect(new Set(volumes.flatMap(({ secret }) => secret?.secretName ?? []))).toEqual(
      new Set(named("Secret")),
    );
    const claims = volumes.flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? []);
    expect(claims).toEqual(named("PersistentVolumeClaim"));
  });

  test("names ports that its pods have", () => {
    const containers = pods.flatMap((pod) => pod.containers);
    for (const { ports = [], startupProbe, livenessProbe, readinessProbe } of containers) {
      const probes = [startupProbe, livenessProbe, readinessProbe].filter((probe) => probe !== undefined);
      const probed = probes.map(({ httpGet, tcpSocket }) => httpGet?.port ?? tcpSocket?.port);
      expect(ports.map(({ name }) => name)).toEqual(expect.arrayContaining(probed));
    }
    for (const { spec } of manifests.of("Service")) {
      const targets = spec?.ports?.map(({ targetPort }) => targetPort);
      expect(portsOf(manifests, spec?.selector)).toEqual(expect.arrayContaining(targets ?? []));
    }
    for (const { spec } of manifests.of("NetworkPolicy")) {
      const allowed = spec?.ingress?.flatMap((rule) => rule.ports ?? []).map(({ port }) => port);
      expect(portsOf(manifests, spec?.podSelector.matchLabels)).toEqual(
        expect.arrayContaining(allowed ?? []),
      );
    }
  });

  test("selects its own pods, in any namespace", () => {
    for (const { spec } of manifests.of("Deployment")) {
      expect(spec?.selector.matchLabels).toEqual(spec?.template.metadata?.labels);
    }
    for (const { spec } of manifests.of("PodDisruptionBudget")) {
      expect(portsOf(manifests, spec?.selector?.matchLabels)).toContain("console");
    }
    for (const { metadata } of manifests.all) expect(metadata?.namespace).toBeUndefined();
  });

  test("runs every container without root, capabilities and a writable root, with limits", () => {
    for (const pod of pods) {
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
      });
      for (const { securityContext, resources } of pod.containers) {
        expect(securityContext).toMatchObject({
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
        });
        expect(resources).toMatchObject({
          requests: { cpu: expect.any(String), memory: expect.any(String) },
          limits: { memory: expect.any(String) },
        });
      }
    }
  });

  test("runs the image as it is meant to be run", () => {
    const inlet = inletOf(manifests);
    const pod = pods.find(({ containers }) => containers.includes(inlet));
    expect(inlet.image).toBe(`inlet:${packageJson.version}`);
    expect(pod?.securityContext).toMatchObject({ runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 });
    expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(GRACE_SECONDS);
    const paths = inlet.volumeMounts?.map(({ mountPath }) => mountPath);
    expect(paths).toEqual(expect.arrayContaining(["/etc/inlet", "/srv/inbox", "/var/lib/inlet"]));
    // Without `medium: Memory`, Kubernetes makes a folder that everybody may write, without the sticky bit.
    const run = inlet.volumeMounts?.find(({ mountPath }) => mountPath === "/run/inlet")?.name;
    expect(pod?.volumes?.find(({ name }) => name === run)?.emptyDir).toMatchObject({ medium: "Memory" });
  });

  test("has a valid configuration, and every secret that it names", async () => {
    const { configuration } = manifests;
    const path = join(await makeFolder(), "inlet.yaml");
    await writeFile(path, configuration, { mode: 0o600 });
    const check = ["config", "check", "--config", path, "--no-secrets", "--json"];
    const { exitCode, stdout } = await runProgram(check, { env: { STATE_DIRECTORY: "/var/lib/inlet" } });
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([0, { valid: true, problems: [], warnings: [] }]);
    const mount = inletOf(manifests).volumeMounts?.find(({ name }) => name === "secrets")?.mountPath;
    const named = [...configuration.matchAll(/file: (\S+)\/([\w-]+)/g)];
    for (const [, folder] of named) expect(folder).toBe(mount);
    const [secret] = manifests.of("Secret");
    const keys = Object.keys(secret?.stringData ?? {});
    expect(keys.toSorted()).toEqual(named.map(([, , name]) => name).toSorted());
  });

  test("lets Prometheus scrape the console's port, also while the pod is not ready", () => {
    const [service] = manifests.of("Service");
    const port = inletOf(manifests).ports?.find(({ name }) => name === "console")?.containerPort;
    expect(manifests.configuration).toContain(`listen: 0.0.0.0:${port}`);
    expect(manifests.configuration).toContain(`hosts: [${service?.metadata?.name}]`);
    expect(service?.spec).toMatchObject({ publishNotReadyAddresses: true, ports: [{ port }] });
    expect(service?.metadata?.annotations).toEqual({
      "prometheus.io/scrape": "true",
      "prometheus.io/port": String(port),
      "prometheus.io/path": "/metrics",
    });
  });
});

test("a key that Kubernetes does not know is refused", async () => {
  const manifests = readManifests(ONE_POD);
  const wrong = { ...inletOf(manifests), readynessProbe: {} } as Container;
  const all = manifests.all.map((it) =>
    it.kind === "Deployment" && it.spec !== undefined
      ? { ...it, spec: { ...it.spec, template: { spec: { containers: [wrong] } } } }
      : it,
  );
  expect(await checkTypes({ ...manifests, all })).toContain("readynessProbe");
});

test("the one pod holds its volumes alone, and stops before the next one starts", () => {
  const manifests = readManifests(ONE_POD);
  expect(manifests.of("Deployment")[0]?.spec).toMatchObject({ replicas: 1, strategy: { type: "Recreate" } });
  expect(accessModes(manifests)).toEqual(["ReadWriteOnce", "ReadWriteOnce"]);
  expect(manifests.configuration).not.toContain("queue:");
  const files = podOf(manifests.of("Deployment")[0] ?? {}).containers.find(({ name }) => name === "files");
  const inbox = /^inbox: (.*)$/m.exec(manifests.configuration)?.[1];
  expect(files?.command).toContain(inbox);
  expect(files?.volumeMounts?.find(({ name }) => name === "inbox")?.readOnly).toBe(true);
});

test("the pods of the fleet share their volumes and a Redis that evicts nothing", () => {
  const manifests = readManifests(FLEET);
  const [inlet, redis] = manifests.of("Deployment");
  expect(inlet?.spec?.replicas).toBeGreaterThan(1);
  expect(accessModes(manifests)).toEqual(["ReadWriteMany", "ReadWriteMany"]);
  const { name } = manifests.of("Service")[1]?.metadata ?? {};
  expect(manifests.configuration).toContain(`queue: redis://${name}:6379`);
  expect(podOf(redis ?? {}).containers[0]?.command?.join(" ")).toContain("--maxmemory-policy noeviction");
});

/** The names of all ports of the pods with these labels. */
function portsOf(manifests: Manifests, labels: object | undefined): (string | undefined)[] {
  const selected = manifests
    .of("Deployment")
    .filter(({ spec }) => JSON.stringify(spec?.template.metadata?.labels) === JSON.stringify(labels));
  const containers = selected.flatMap((deployment) => podOf(deployment).containers);
  return containers.flatMap(({ ports = [] }) => ports.map(({ name }) => name));
}

function accessModes(manifests: Manifests): string[] {
  return manifests.of("PersistentVolumeClaim").flatMap(({ spec }) => spec?.accessModes ?? []);
}

/** Lets the compiler compare each object, written as a literal, with its type: it also refuses unknown keys. */
async function checkTypes({ all }: Manifests): Promise<string> {
  const folder = await makeFolder();
  const lines = all.map(({ apiVersion = "", kind, ...rest }, at) => {
    const types = join(ROOT, "node_modules/kubernetes-types", TYPES[apiVersion] ?? "unknown");
    return `export const it${at}: import("${types}").${kind} = ${JSON.stringify({ apiVersion, kind, ...rest })};`;
  });
  await writeFile(join(folder, "manifests.ts"), lines.join("\n"));
  const compile = ["--noEmit", "--strict", "--module", "preserve", "--types", "", "manifests.ts"];
  return (await runCommand(join(ROOT, "node_modules/.bin/tsc"), compile, { cwd: folder })).stdout;
}
