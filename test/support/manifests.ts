/** The Kubernetes manifests in examples/kubernetes, and the files for Compose in config/. */
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Deployment } from "kubernetes-types/apps/v1.d.ts";
import type {
  ConfigMap,
  Container,
  PersistentVolumeClaim,
  PodSpec,
  Secret,
  Service,
} from "kubernetes-types/core/v1.d.ts";
import type { NetworkPolicy } from "kubernetes-types/networking/v1.d.ts";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.d.ts";
import { parse, parseAllDocuments } from "yaml";
import { ROOT } from "./root.ts";
import { PASSWORD } from "./settings.ts";

export const ONE_POD = "examples/kubernetes/one-pod.yaml";
export const FLEET = "examples/kubernetes/fleet.yaml";

interface Kinds {
  readonly ConfigMap: ConfigMap;
  readonly Secret: Secret;
  readonly PersistentVolumeClaim: PersistentVolumeClaim;
  readonly Deployment: Deployment;
  readonly Service: Service;
  readonly NetworkPolicy: NetworkPolicy;
  readonly PodDisruptionBudget: PodDisruptionBudget;
}

type Manifest = Kinds[keyof Kinds];

export interface Manifests {
  readonly all: readonly Manifest[];
  of<Kind extends keyof Kinds>(kind: Kind): Kinds[Kind][];
  /** The text of the configuration in the ConfigMap. */
  readonly configuration: string;
}

export function readManifests(file: string): Manifests {
  const documents = parseAllDocuments(readFileSync(join(ROOT, file), "utf8"));
  const problem = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])[0];
  if (problem !== undefined) throw problem;
  const all: Manifest[] = documents.map((document) => document.toJS());
  const of = <Kind extends keyof Kinds>(kind: Kind) => all.filter((it) => it.kind === kind) as Kinds[Kind][];
  return { all, of, configuration: of("ConfigMap")[0]?.data?.["inlet.yaml"] ?? "" };
}

export function podOf({ spec }: Deployment): PodSpec {
  const pod = spec?.template.spec;
  if (pod === undefined) throw new Error("the Deployment has no pod");
  return pod;
}

/** The container of Inlet. */
export function inletOf(manifests: Manifests): Container {
  const containers = manifests.of("Deployment").flatMap((deployment) => podOf(deployment).containers);
  const inlet = containers.find(({ name }) => name === "inlet");
  if (inlet === undefined) throw new Error("there is no container of Inlet");
  return inlet;
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly configs: { readonly inlet: { readonly file: string } };
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

interface ComposeService {
  readonly secrets?: readonly string[];
  readonly ports?: readonly string[];
  readonly command?: readonly string[];
  readonly deploy?: { readonly replicas: number };
  /** `CMD`, and the words of the command. */
  readonly healthcheck?: { readonly test: readonly string[] };
}

/** With the text of the configuration that it mounts. */
export function readCompose(file: string): { compose: Compose; configuration: string } {
  const compose: Compose = parse(readFileSync(join(ROOT, file), "utf8"));
  const configuration = readFileSync(join(ROOT, "config", compose.configs.inlet.file), "utf8");
  return { compose, configuration };
}

/** Writes each secret file that the configuration names into the folder. Returns the configuration with these paths. */
export async function placeSecrets(
  configuration: string,
  folder: string,
  values: Readonly<Record<string, string>> = {},
): Promise<string> {
  const named = [...configuration.matchAll(/file: (\/[\w/-]+\/([\w-]+))/g)];
  await mkdir(join(folder, "secrets"), { recursive: true });
  let placed = configuration;
  for (const [, path = "", name = ""] of named) {
    const own = join(folder, "secrets", name);
    await writeFile(own, values[name] ?? (name === "supplier" ? PASSWORD : "c".repeat(60)), { mode: 0o600 });
    placed = placed.replaceAll(path, own);
  }
  return placed;
}
