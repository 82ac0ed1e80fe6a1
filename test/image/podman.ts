/**
 * Builds the Dockerfile unchanged, on a base image made here from Debian's packages and this Node, because no image
 * registry can be reached. Needs root. Images are in a folder of this test.
 */
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { installProgram } from "../support/debian.ts";
import { type Finished, runCommand, runNpm } from "../support/program.ts";
import { ROOT } from "../support/root.ts";

const CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
/** Limits of an ordinary container; a machine may allow less than podman's defaults. */
const LIMITS = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"];

/** Takes the place of the pinned image in the Dockerfile. */
const BASE_IMAGE = "localhost/inlet-test-base";

const BASE = `FROM scratch
ADD base.tar /
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
COPY ca.crt npmrc /usr/local/etc/
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && useradd --uid 1000 --create-home node
`;

/** A command that takes longer hangs. The test then says which one. */
const LIMIT_MS = 600_000;

export interface Podman {
  run(...args: readonly string[]): Promise<Finished>;
  /** Runs a container to its end; `args` end with the image and its command. */
  runContainer(...args: readonly string[]): Promise<Finished>;
  /** The same without an attached terminal or pipe, and without waiting for its end. */
  startContainer(name: string, ...args: readonly string[]): Promise<void>;
  /** Waits until it has ended. Returns its exit code. */
  ended(name: string): Promise<number>;
}

/** Keeps everything in `folder`, which the caller removes. */
export async function openPodman(folder: string): Promise<Podman> {
  for (const name of ["podman", "runc", "mmdebstrap"]) await installProgram(name, name);
  const store = ["--root", join(folder, "store"), "--runroot", join(folder, "run")];
  const kinds = ["--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--runtime", "runc"];
  const global = [...store, ...kinds];
  const run = async (...args: readonly string[]) => {
    const end = new AbortController();
    const limit = setTimeout(LIMIT_MS, undefined, { signal: end.signal }).then(() => {
      throw new Error(`podman ${args.join(" ")}: does not end`);
    });
    const finished = runCommand("podman", [...global, ...args]);
    return Promise.race([finished, limit]).finally(() => end.abort());
  };
  return {
    run,
    runContainer: (...args) => run("run", "--rm", ...LIMITS, ...args),
    async startContainer(name, ...args) {
      await mustSucceed(run("run", "--detach", "--name", name, ...LIMITS, ...args));
    },
    ended: async (name) => Number((await mustSucceed(run("wait", name))).stdout),
  };
}

/** `args`: of the build, by name. Returns the name of the image. */
export async function buildImage(
  podman: Podman,
  folder: string,
  args: Readonly<Record<string, string>>,
): Promise<string> {
  const base = join(folder, "base");
  await mkdir(base, { recursive: true });
  await makeBase(base);
  const build = ["build", "--quiet", "--network", "host", "--pull=never", "--format", "docker"];
  await mustSucceed(podman.run(...build, "--tag", BASE_IMAGE, base));
  // Packages that this machine has fetched before are not fetched again.
  const { stdout: cache } = await mustSucceed(runNpm(["config", "get", "cache"], ROOT));
  const volume = ["--volume", `${cache.trim()}:/root/.npm:O`];
  const on = Object.entries({ NODE_IMAGE: BASE_IMAGE, ...args }).flatMap(([name, value]) => [
    "--build-arg",
    `${name}=${value}`,
  ]);
  await mustSucceed(podman.run(...build, ...on, ...LIMITS.slice(0, 2), ...volume, "--tag", "inlet", ROOT));
  return "inlet";
}

async function makeBase(folder: string): Promise<void> {
  const debian = ["--quiet", "--variant=minbase", "--include=ca-certificates"];
  const slim = ["--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*"];
  await mustSucceed(runCommand("mmdebstrap", [...debian, ...slim, "bookworm", join(folder, "base.tar")]));
  await copyFile(process.execPath, join(folder, "node"));
  await copyFile(CA_BUNDLE, join(folder, "ca.crt"));
  const { stdout: registry } = await mustSucceed(runNpm(["config", "get", "registry"], ROOT));
  await writeFile(join(folder, "npmrc"), `cafile=/usr/local/etc/ca.crt\nregistry=${registry.trim()}\n`);
  await writeFile(join(folder, "Containerfile"), BASE);
  const { stdout: tarball } = await mustSucceed(runNpm(["pack", "--silent", "npm@11"], folder));
  await mkdir(join(folder, "npm"));
  const unpack = ["-xzf", join(folder, tarball.trim()), "-C", join(folder, "npm"), "--strip-components=1"];
  await mustSucceed(runCommand("tar", unpack));
}

async function mustSucceed(finished: Promise<Finished>): Promise<Finished> {
  const { exitCode, stdout, stderr } = await finished;
  if (exitCode !== 0) throw new Error(`it ended with ${exitCode}: ${stderr}${stdout}`);
  return { exitCode, stdout, stderr };
}
