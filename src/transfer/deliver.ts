/**
 * Ends a round with its content: everything is on the disk first, then the end record decides, then renames move the content
 * to the inbox, or to the quarantine.
 *
 * Most deliveries are one folder, moved by one rename. A placement is for those with several parts, and says in which order
 * they appear. A folder with files beside it: first manifest and sums, so that a consumer that sees the folder finds them;
 * then the folder; then its done-marker. Single files: first the files; then the sums; then a done-marker for each file; and
 * the manifest last, as a sign that everything is there.
 */
import { join, posix } from "node:path";
import { forEachLimit, mapLimit } from "../base/concurrency.ts";
import { durableStep } from "../base/disk.ts";
import { setFolderMode, setGroup, writeFinished } from "../base/durable.ts";
import { describeFault, Fault } from "../base/faults.ts";
import { lstat, mkdir, readdir, rm } from "../base/files.ts";
import { foldName } from "../base/fold-name.ts";
import { splitPath } from "../base/inbox-door.ts";
import { type LongText, NO_TEXT } from "../base/long-text.ts";
import { type Sum, sumFiles } from "../base/sums.ts";
import type { Stage } from "../ledger/port.ts";
import { STEPS } from "../model/handoff.ts";
import {
  type Contents,
  filesIn,
  formatManifest,
  formatSums,
  MANIFEST,
  type Proven,
  SUMS,
  verifiedOf,
} from "../model/manifest.ts";
import {
  formatLayout,
  formatName,
  type LayoutValues,
  numberedName,
  safeNames,
  shortened,
} from "../model/names.ts";
import { identityOf, makePlacement, type Part, type Placement } from "../model/placement.ts";
import { type TransferRecord, withoutMissing } from "../model/record.ts";
import { routeOf } from "../model/route.ts";
import type { Outcome, Run } from "./run.ts";

const PERMISSIONS = 0o777;
/** How many files are written or looked at in parallel. */
const AT_ONCE = 8;
/** Leaves room for a number and for `.transfer.json` in the 255 bytes of a name. */
const MAX_FOLDER_BYTES = 230;
const DEFAULT_NAMES = "{trackingId}_{name}";
/** The done-marker of a folder, beside the stage. */
const DONE = "done";

/** A complete stage, and where it goes. */
interface Delivery {
  readonly stage: Stage;
  readonly contents: Proven;
  /** The folder that the layout gives, from the inbox's root. */
  readonly wanted: string;
  /** Missing: the common inbox. */
  readonly inbox: string | undefined;
}

interface PlannedDelivery {
  /** From the inbox's root: the delivered folder, or the folder that the files go to. */
  readonly folder: string;
  readonly manifest: LongText;
  /** Texts of files beside the stage, by name. */
  readonly texts: ReadonlyMap<string, LongText>;
  /** Without the identities of its parts, which are known once everything is written. */
  readonly placement: Placement;
}

/** A delivery that is on the disk, and whose round has not ended. */
export interface Prepared extends Delivery {
  /** Missing for one folder with its manifest inside. */
  readonly planned: PlannedDelivery | undefined;
  /** The manifest and the sums in the folder, if they are there. */
  readonly written: TransferRecord["written"];
}

/** Completes the stage with what Inlet adds, and syncs it. Throws `TARGET_UNSAFE`, and `CONTENT_CHANGED`. */
export async function prepareDelivery(run: Run, contents: Proven): Promise<Prepared> {
  const { deliver, manifest = "inside", done } = run.handoff;
  const { stages, placements } = run.tools.ledger;
  const stage = await run.openStage();
  const delivery = { stage, contents, ...targetOf(run, contents) };
  const plan = deliver === "files" ? planFiles : planFolder;
  const isPlain = deliver !== "files" && manifest === "inside" && done === undefined;
  const planned = isPlain ? undefined : await plan(run, delivery);
  const added = await finishStage(run, delivery);
  const all = [...filesIn(contents).map((file) => [file.name, file] as const), ...added];
  const sums = new Map(all.map(([name, { sha256 }]) => [name, sha256]));
  // Others may have put something into the folder, or taken a file away.
  const entries = await readdir(stage.folder, { withFileTypes: true });
  if (entries.length !== sums.size || !entries.every((it) => it.isFile() && sums.has(it.name)))
    throw new Fault("CONTENT_CHANGED", { detail: stage.folder });
  stage.proof = await sumFiles(sums);
  if (planned !== undefined) await writeDelivery(run, delivery, planned);
  else if (!stage.isNew) await placements.drop(stage);
  await stages.seal(stage);
  const ours = { manifest: added.get(MANIFEST), sums: added.get(SUMS) };
  const written = ours.manifest && ours.sums && { manifest: ours.manifest, sums: ours.sums };
  return { ...delivery, planned, written };
}

/** Decides the delivery, and places it. Throws `ROUND_LOST` if another attempt, or an operator, has ended the round. */
export async function deliver(run: Run, prepared: Prepared): Promise<Outcome> {
  const { stage, contents, planned, inbox, written } = prepared;
  const { handoff } = run;
  // A plain folder claims its name only now: nothing else refers to that.
  const { folder } = planned ?? (await planFolder(run, prepared));
  const { acknowledgement } = handoff;
  const steps = STEPS.filter((step) => handoff[step] !== undefined);
  const placement = planned?.placement.deliver;
  const verified = verifiedOf(contents);
  const { owners } = handoff;
  const facts = { verified, folder, inbox, placement, acknowledgement, steps, owners, sum: stage.proof };
  run.enter("delivering", { ...facts, written });
  const record = run.recordIn("delivered");
  await run.tools.handoffs.prepare(record);
  await endWith(run, stage, record);
  return { kind: "delivered" };
}

/** Moves the content received so far to the quarantine, with the reason. Throws `ROUND_LOST`. */
export async function quarantine(run: Run, fault: Fault): Promise<void> {
  const { ledger, clock } = run.tools;
  const { trackingId, sender } = run.record;
  const { code, message, advice } = fault;
  const stage = await run.openStage();
  const at = new Date(clock.now()).toISOString();
  const facts = { at, mailbox: run.source.mailbox.name, trackingId, sender };
  await ledger.stages.sealForQuarantine(stage, { ...facts, code, message, advice, contents: run.contents });
  const why = { reason: code, message: describeFault(fault), ...withoutMissing({ output: fault.output }) };
  const record = run.recordIn("quarantined", why);
  await endWith(run, stage, record, fault);
}

/**
 * Moves the folder of an ended round if a crash, in any process, has prevented that. `isLate`: this process has tried, and
 * its disk may have failed after the move. Hand-offs find what was moved by themselves.
 */
export async function finishPlacing(run: Run, isLate: boolean): Promise<void> {
  const { record, tools } = run;
  if (await tools.ledger.place(record)) afterPlacing(run, record);
  else if (isLate && tools.ledger.settle(record)) run.noteEnd(record);
}

/** Where the delivery goes, by its route or mailbox as configured now. */
function targetOf(run: Run, contents: Contents): Pick<Delivery, "wanted" | "inbox"> {
  const { mailbox } = run.source;
  const route = routeOf(mailbox, run.record);
  const own = route?.inbox ?? mailbox.inbox;
  const layout = route?.layout ?? mailbox.layout;
  return {
    wanted: formatLayout(layout, layoutValues(run, contents)),
    inbox: own === run.tools.inbox.root ? undefined : own,
  };
}

/** `fault`: why the transfer goes to the quarantine. */
async function endWith(run: Run, stage: Stage, record: TransferRecord, fault?: Fault): Promise<void> {
  const { ledger } = run.tools;
  if (!(await ledger.stages.endWith(stage, record)))
    throw new Fault("ROUND_LOST", { detail: record.trackingId });
  durableStep("round ended");
  run.isDecided = true;
  await ledger.place(record, stage);
  durableStep("content placed");
  afterPlacing(run, record, fault);
}

/** The steps after the rename. A crash between them is safe. */
function afterPlacing(run: Run, record: TransferRecord, fault?: Fault): void {
  run.noteEnd(record, fault);
  if (record.state === "delivered") run.tools.handoffs.placed(record);
}

/** Adds the manifest, sums and marker that belong in the folder, and syncs each. Returns them by name. */
async function finishStage(run: Run, delivery: Delivery) {
  const { record, handoff } = run;
  const { contents, stage } = delivery;
  const { folder } = stage;
  const texts = new Map<string, LongText>();
  if ((handoff.manifest ?? "inside") === "inside") {
    texts.set(MANIFEST, () => formatManifest(record, run.key, contents));
    texts.set(SUMS, () => formatSums(contents));
  }
  if (handoff.marker !== undefined && handoff.deliver !== "files") texts.set(handoff.marker, NO_TEXT);
  const added = new Map<string, Awaited<ReturnType<typeof writeFinished>>>();
  await forEachLimit(texts, Math.max(texts.size, 1), async ([name, text]) => {
    added.set(name, await writeFinished(join(folder, name), text, handoff.fileMode));
  });
  if (handoff.gid !== undefined) await setGroup(folder, handoff.gid);
  const hasMode = ((await lstat(folder)).mode & PERMISSIONS) === handoff.folderMode;
  if (!hasMode) await setFolderMode(folder, handoff.folderMode);
  return added;
}

/** Writes the files beside the stage, and the placement. Replaces everything that an earlier call wrote. */
export async function writeDelivery(
  { tools, handoff }: Run,
  { stage, contents }: Delivery,
  { texts, placement, manifest }: PlannedDelivery,
): Promise<void> {
  const sums = new Map<string, Sum | undefined>([["folder ", stage.proof]]);
  for (const { name, sha256 } of filesIn(contents)) sums.set(`file ${name}`, sha256);
  await rm(stage.beside, { recursive: true, force: true });
  if (texts.size > 0) await mkdir(stage.beside, { mode: 0o700 });
  await forEachLimit(texts, AT_ONCE, async ([name, text]) => {
    const written = await writeFinished(join(stage.beside, name), text, handoff.fileMode);
    sums.set(`beside ${name}`, written.sha256);
  });
  if (texts.size > 0 && handoff.gid !== undefined) await setGroup(stage.beside, handoff.gid);
  const identify = async (part: Part): Promise<Part> => {
    const folder = part.from === "beside" ? stage.beside : stage.folder;
    const identity = identityOf(await lstat(join(folder, part.name), { bigint: true }));
    return { ...part, identity, sum: sums.get(`${part.from} ${part.name}`) };
  };
  const phases: Part[][] = [];
  for (const parts of placement.phases) phases.push(await mapLimit(parts, AT_ONCE, identify));
  await tools.ledger.placements.write(stage, { ...placement, phases }, manifest);
}

/** The values of the placeholders in a layout, and in names of files. */
function layoutValues({ source, record }: Run, { subject = "" }: Contents): LayoutValues {
  const { sender, trackingId, transferId, at } = record;
  const discovered = new Date(at.discovered ?? 0);
  return { mailbox: source.mailbox.name, sender, trackingId, transferId, subject, discovered };
}

/** Claims the names of all parts of a delivery. Throws `TARGET_UNSAFE`. */
async function planFolder(run: Run, delivery: Delivery): Promise<PlannedDelivery> {
  const { stage, contents, wanted, inbox } = delivery;
  const { tools, record, key } = run;
  const { done, manifest: where = "inside" } = run.handoff;
  const { parent, name: last } = splitPath(wanted);
  const base = shortened(last, MAX_FOLDER_BYTES);
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`;
    const added = where === "beside" ? [MANIFEST, SUMS].map((text) => beside(text, `${name}.${text}`)) : [];
    const content = partOf("folder", "", name);
    const dones = done === undefined ? [] : [beside(DONE, `${name}${done}`)];
    const paths = [...added, content, ...dones].map(({ as }) => posix.join(parent, as));
    if (!(await tools.ledger.placements.claim(stage, paths, record, inbox))) continue;
    const manifest = () => formatManifest(record, key, contents);
    const texts = new Map<string, LongText>(dones.map((part) => [part.name, NO_TEXT]));
    if (where === "beside") {
      texts.set(MANIFEST, manifest).set(SUMS, () => formatSums(contents, (file) => `${name}/${file}`));
    }
    const facts = {
      deliver: "folder",
      parent,
      manifest: where === "beside" ? `${name}.${MANIFEST}` : undefined,
      isManifestInside: where === "inside",
    } as const;
    const placement = makePlacement(facts, { before: [added], content: [content], after: [dones] });
    return { folder: posix.join(parent, name), manifest, texts, placement };
  }
}

/** The same for files that are delivered by themselves. */
async function planFiles(run: Run, delivery: Delivery): Promise<PlannedDelivery> {
  const { contents, wanted: parent } = delivery;
  const { record, key } = run;
  const { done, manifest: where } = run.handoff;
  const sent = filesIn(contents).map(({ name }) => name);
  const hasManifest = where === "beside";
  const names = await claimNames(run, delivery);
  const asOf = (name: string) => names.get(name) ?? name;
  const manifest = () => formatManifest(record, key, contents, names);
  const ours = (name: string) => (hasManifest ? [beside(name, asOf(name))] : []);
  const dones =
    done === undefined ? [] : sent.map((name, at) => beside(`${DONE}-${at}`, `${asOf(name)}${done}`));
  const texts = new Map<string, LongText>(dones.map(({ name }) => [name, NO_TEXT]));
  if (hasManifest) texts.set(SUMS, () => formatSums(contents, asOf)).set(MANIFEST, manifest);
  const facts = { deliver: "files", parent, manifest: hasManifest ? asOf(MANIFEST) : undefined } as const;
  const content = sent.map((name) => partOf("file", name, asOf(name)));
  const after = [ours(SUMS), dones, ours(MANIFEST)];
  const placement = makePlacement(facts, { before: [], content, after });
  return { folder: parent, manifest, texts, placement };
}

/** Chooses and claims the delivered name of each file, and of its done-marker. */
async function claimNames(run: Run, delivery: Delivery): Promise<Map<string, string>> {
  const { stage, contents, wanted, inbox } = delivery;
  const { placements } = run.tools.ledger;
  const { done, manifest, names: pattern = DEFAULT_NAMES } = run.handoff;
  const values = layoutValues(run, contents);
  const sent = new Set(filesIn(contents).map(({ name }) => name));
  const all = [...sent, ...(manifest === "beside" ? [SUMS, MANIFEST] : [])];
  const safe = await safeNames(
    all.map((name) => ({ id: name, name: formatName(pattern, values, name) })),
    [],
  );
  const names = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of all) {
    const ends = done === undefined || !sent.has(name) ? [""] : ["", done];
    for (let number = 1; !names.has(name); number++) {
      const candidate = numberedName(safe.get(name) ?? name, number);
      const wantedNames = ends.map((end) => `${candidate}${end}`);
      if (wantedNames.some((it) => taken.has(foldName(it)))) continue;
      const paths = wantedNames.map((it) => posix.join(wanted, it));
      if (!(await placements.claim(stage, paths, run.record, inbox))) continue;
      names.set(name, candidate);
      for (const it of wantedNames) taken.add(foldName(it));
    }
  }
  return names;
}

function beside(name: string, as: string): Part {
  return partOf("beside", name, as);
}

function partOf(from: Part["from"], name: string, as: string): Part {
  return { from, name, as, identity: "" };
}
