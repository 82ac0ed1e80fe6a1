/** Judges a delivery whose parts are all placed: its single files, and what lies beside them or beside its folder. */
import type { SimulatedDisk } from "../ground/disk.ts";
import { type Circumstances, checkBytes, checkSums, type Found } from "./contents.ts";
import { handoffsOf } from "./expect.ts";
import { checkManifest, type Manifest, parseManifest } from "./manifest.ts";
import type { Delivered } from "./observer.ts";
import { CONSUMER } from "./paths.ts";

/** What Inlet puts beside what was sent. */
interface Beside {
  readonly manifest: Manifest | undefined;
  readonly sums: string | undefined;
  /** The paths of the markers. */
  readonly dones: readonly string[];
}

/** Nothing is said of a delivery some of which was taken. */
export function* checkPlaced(
  disk: SimulatedDisk,
  delivery: Delivered,
  circumstances: Circumstances,
): Iterable<string> {
  const { seen, record } = delivery;
  const isWhole = [...seen.values()].every(
    (path) => delivery.paths.includes(path) && disk.tryGet(path) !== undefined,
  );
  if (record.placement === undefined || !isWhole) return;
  const beside = findBeside(disk, delivery);
  yield* checkWanted(delivery, beside);
  if (record.placement === "files") yield* checkFiles(disk, delivery, beside, circumstances);
  else yield* checkFolder(disk, delivery, beside, circumstances);
}

function findBeside(disk: SimulatedDisk, { seen }: Delivered): Beside {
  const parts = [...seen].filter(([what]) => what.startsWith(".beside"));
  const find = (name: string) => {
    const path = parts.find(([what]) => what.endsWith(`/${name}`))?.[1];
    return path === undefined ? undefined : read(disk, path);
  };
  return {
    manifest: parseManifest(find("transfer.json")),
    sums: find("SHA256SUMS")?.toString(),
    dones: parts.filter(([what]) => what.includes("/done")).map(([, path]) => path),
  };
}

/** A manifest is there if each hand-off that may apply wants one, and is not if none does. */
function* checkWanted(delivery: Delivered, { manifest }: Beside): Iterable<string> {
  const { trackingId, sites, of } = delivery;
  const handoffs = handoffsOf(sites, of.address, of.transfer);
  if (handoffs.every((each) => each.manifest === "beside") && manifest === undefined)
    yield `${trackingId} lacks its manifest beside it`;
  const isUnwanted = handoffs.every(
    (each) => each.manifest === "none" || (each.deliver === "files" && each.manifest === undefined),
  );
  if (isUnwanted && manifest !== undefined) yield `${trackingId} has a manifest that nobody wants`;
}

function* checkFiles(
  disk: SimulatedDisk,
  delivery: Delivered,
  { manifest, sums, dones }: Beside,
  circumstances: Circumstances,
): Iterable<string> {
  const { trackingId, seen } = delivery;
  const sent = [...seen].filter(([what]) => !what.startsWith(".beside"));
  const found: Found = new Map(sent.map(([what, path]) => [what.slice(1), read(disk, path)]));
  yield* checkBytes(found, circumstances);
  if (manifest !== undefined) yield* checkManifest(manifest, found, circumstances);
  const as = new Map(sent.map(([what, path]) => [what.slice(1), nameOf(path)]));
  const listed = [...(manifest?.files ?? []), ...(manifest?.messageFile ? [manifest.messageFile] : [])];
  for (const file of listed) {
    if (file.deliveredAs !== as.get(file.name))
      yield `the manifest of ${trackingId} says that ${file.name} is ${file.deliveredAs}`;
  }
  if (sums !== undefined) yield* checkSums(sums, found, trackingId, (name) => as.get(name) ?? name);
  if (wantsDone(delivery) && dones.length !== sent.length) yield `${trackingId} lacks a done-marker`;
  for (const path of dones)
    if (!sent.some(([, each]) => path === `${each}.done`)) yield `${trackingId}: ${path} marks no file`;
}

/** Its content was judged when it appeared. */
function* checkFolder(
  disk: SimulatedDisk,
  delivery: Delivered,
  { manifest, sums }: Beside,
  circumstances: Circumstances,
): Iterable<string> {
  const { trackingId, seen } = delivery;
  const path = seen.get("") ?? "";
  const folder = disk.tryGet(path);
  if (folder?.kind !== "folder") return;
  const found: Found = new Map(
    [...folder.entries].flatMap(([name, entry]) =>
      entry.kind === "file" && entry.uid !== CONSUMER ? [[name, entry.bytes] as const] : [],
    ),
  );
  if (manifest !== undefined) yield* checkManifest(manifest, found, circumstances);
  if (sums !== undefined) yield* checkSums(sums, found, trackingId, (name) => `${nameOf(path)}/${name}`);
  if (wantsDone(delivery) && disk.tryGet(`${path}.done`) === undefined)
    yield `${trackingId} lacks its done-marker`;
}

function wantsDone({ sites, of }: Delivered): boolean {
  return handoffsOf(sites, of.address, of.transfer).every(({ done }) => done === true);
}

function read(disk: SimulatedDisk, path: string): Buffer {
  const entry = disk.tryGet(path);
  return entry?.kind === "file" ? entry.bytes : Buffer.alloc(0);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
