/**
 * Plans a delivery of several parts, single files or a folder with files beside it: the names of all parts, and the order
 * in which they appear.
 *
 * A folder: first manifest and sums beside it, so that a consumer that sees the folder finds them; then the folder; then
 * its done-marker. Single files: first the files; then the sums; then a done-marker for each file; and the manifest last, as
 * a sign that everything is there.
 */

import { join, posix } from "node:path";
import { forEachLimit } from "../base/concurrency.ts";
import { setGroup, writeFinished } from "../base/durable.ts";
import { lstat, mkdir, rm } from "../base/files.ts";
import { foldName } from "../base/fold-name.ts";
import type { LayoutValues } from "../inbox/port.ts";
import type { Stage } from "../ledger/port.ts";
import type { Handoff, Mailbox } from "../model/mailbox.ts";
import {
  type Contents,
  type DeliveredNames,
  filesIn,
  formatManifest,
  formatSums,
  MANIFEST,
  SUMS,
} from "../model/manifest.ts";
import { identityOf, makePlacement, type Part, type Placement } from "../model/placement.ts";
import type { TransferRecord } from "../model/record.ts";
import type { Run } from "./run.ts";

/** How many files are written or looked at in parallel. */
const AT_ONCE = 8;
/** Leaves room for a number and for `.transfer.json` in the 255 bytes of a name. */
const MAX_FOLDER_BYTES = 230;
const DEFAULT_NAMES = "{trackingId}_{name}";

export interface PlannedDelivery {
  /** From the inbox's root: the delivered folder, or the folder that the files go to. */
  readonly folder: string;
  readonly deliver: Placement["deliver"];
  /** The manifest's text. */
  readonly manifest: string;
  /** Texts of files beside the stage, by name. */
  readonly texts: ReadonlyMap<string, string>;
  /** `identify` adds the identity of a part, which is known once everything is written. */
  plan(identify: (part: Omit<Part, "identity">) => Part): Placement;
  /** The parts, in any order. */
  readonly parts: readonly Omit<Part, "identity">[];
}

/** A complete stage, on the disk, whose round has not ended. */
export interface Prepared {
  readonly stage: Stage;
  readonly contents: Contents;
  /** Missing for one folder with its manifest inside. */
  readonly planned: PlannedDelivery | undefined;
  /** The texts that Inlet has added to the folder, by name. */
  readonly added: ReadonlyMap<string, string>;
  readonly target: Target;
}

/** Whether deliveries need a placement. */
export function needsPlacement({ deliver, manifest, done }: Handoff): boolean {
  return deliver === "files" || (manifest ?? "inside") !== "inside" || done !== undefined;
}

export interface Target {
  /** The folder that the layout gives. */
  readonly wanted: string;
  /** Missing: the common inbox. */
  readonly inbox: string | undefined;
}

/** Claims the names of all parts. Throws `TARGET_UNSAFE`. */
export function planDelivery(
  run: Run,
  stage: Stage,
  contents: Contents,
  target: Target,
): Promise<PlannedDelivery> {
  const plan = run.handoff.deliver === "files" ? planFiles : planFolder;
  return plan(run, stage, contents, target);
}

/** Writes the files beside the stage, and the placement. Replaces everything that an earlier call wrote. */
export async function writeDelivery(run: Run, stage: Stage, planned: PlannedDelivery): Promise<void> {
  const { handoff } = run;
  await rm(stage.beside, { recursive: true, force: true });
  if (planned.texts.size > 0) await mkdir(stage.beside, { mode: 0o700 });
  await forEachLimit(planned.texts, AT_ONCE, ([name, text]) =>
    writeFinished(join(stage.beside, name), text, handoff.fileMode),
  );
  if (planned.texts.size > 0 && handoff.gid !== undefined) await setGroup(stage.beside, handoff.gid);
  const identities = new Map<string, string>();
  await forEachLimit(planned.parts, AT_ONCE, async (part) => {
    const folder = part.from === "beside" ? stage.beside : stage.folder;
    identities.set(part.as, identityOf(await lstat(join(folder, part.name), { bigint: true })));
  });
  const placement = planned.plan((part) => ({ ...part, identity: identities.get(part.as) ?? "" }));
  await run.tools.ledger.stages.writePlacement(stage, placement, planned.manifest);
}

/** The values of the placeholders in a layout, and in names of files. */
export function layoutValues(
  { name: mailbox }: Mailbox,
  { sender, trackingId, transferId, at }: TransferRecord,
  subject: string | undefined,
): LayoutValues {
  const discovered = new Date(at.discovered ?? 0);
  return { mailbox, sender, trackingId, transferId, subject: subject ?? "", discovered };
}

async function planFolder(
  run: Run,
  stage: Stage,
  contents: Contents,
  { wanted, inbox: root }: Target,
): Promise<PlannedDelivery> {
  const { ledger, inbox } = run.tools;
  const { done, manifest: where = "inside" } = run.handoff;
  const parent = parentOf(wanted);
  const base = inbox.shortened(posix.basename(wanted), MAX_FOLDER_BYTES);
  const manifest = formatManifest(run.record, run.key, contents);
  const texts = new Map<string, string>();
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`;
    const inFolder = (file: string) => `${name}/${file}`;
    if (where === "beside") texts.set(MANIFEST, manifest).set(SUMS, formatSums(contents, inFolder));
    const before = [...texts.keys()].map((text) => beside(text, `${name}.${text}`));
    const after = done === undefined ? [] : [beside(DONE, `${name}${done}`)];
    const content = [{ from: "folder", name: "", as: name } as const];
    const parts = [...before, ...content, ...after];
    const paths = parts.map(({ as }) => posix.join(parent, as));
    if (!(await ledger.stages.claim(stage, paths, run.record, root))) continue;
    const facts = {
      deliver: "folder",
      parent,
      manifest: where === "beside" ? `${name}.${MANIFEST}` : undefined,
      isManifestInside: where === "inside",
    } as const;
    return {
      folder: posix.join(parent, name),
      deliver: "folder",
      manifest,
      texts: done === undefined ? texts : texts.set(DONE, ""),
      parts,
      plan: (identify) =>
        makePlacement(facts, {
          before: [before.map(identify)],
          content: content.map(identify),
          after: [after.map(identify)],
        }),
    };
  }
}

/** The done-marker of a folder, beside the stage. */
const DONE = "done";

async function planFiles(
  run: Run,
  stage: Stage,
  contents: Contents,
  { wanted, inbox: root }: Target,
): Promise<PlannedDelivery> {
  const { ledger, inbox } = run.tools;
  const { done, manifest: where, names: pattern = DEFAULT_NAMES } = run.handoff;
  const hasManifest = where === "beside";
  const values = layoutValues(run.source.mailbox, run.record, contents.subject);
  const sent = new Set(filesIn(contents).map(({ name }) => name));
  const all = [...sent, ...(hasManifest ? [SUMS, MANIFEST] : [])];
  const safe = await inbox.safeNames(
    all.map((name) => ({ id: name, name: inbox.formatName(pattern, values, name) })),
    [],
  );
  const names = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of all) {
    const ends = done === undefined || !sent.has(name) ? [""] : ["", done];
    for (let number = 1; !names.has(name); number++) {
      const candidate = inbox.numberedName(safe.get(name) ?? name, number);
      const wantedNames = ends.map((end) => `${candidate}${end}`);
      if (wantedNames.some((it) => taken.has(foldName(it)))) continue;
      const paths = wantedNames.map((it) => posix.join(wanted, it));
      if (!(await ledger.stages.claim(stage, paths, run.record, root))) continue;
      names.set(name, candidate);
      for (const it of wantedNames) taken.add(foldName(it));
    }
  }
  return describeFiles(run, contents, { parent: wanted, sent: [...sent], names, done, hasManifest });
}

interface NamedFiles {
  readonly parent: string;
  readonly sent: readonly string[];
  readonly names: DeliveredNames;
  readonly done: string | undefined;
  readonly hasManifest: boolean;
}

function describeFiles(
  run: Run,
  contents: Contents,
  { parent, sent, names, done, hasManifest }: NamedFiles,
): PlannedDelivery {
  const asOf = (name: string) => names.get(name) ?? name;
  const manifest = formatManifest(run.record, run.key, contents, names);
  const sums = hasManifest ? [beside(SUMS, asOf(SUMS))] : [];
  const last = hasManifest ? [beside(MANIFEST, asOf(MANIFEST))] : [];
  const dones =
    done === undefined ? [] : sent.map((name, at) => beside(`${DONE}-${at}`, `${asOf(name)}${done}`));
  const files = sent.map((name) => ({ from: "file", name, as: asOf(name) }) as const);
  const texts = new Map(dones.map(({ name }) => [name, ""]));
  if (hasManifest) texts.set(SUMS, formatSums(contents, asOf)).set(MANIFEST, manifest);
  const facts = { deliver: "files", parent, manifest: hasManifest ? asOf(MANIFEST) : undefined } as const;
  return {
    folder: parent,
    deliver: "files",
    manifest,
    texts,
    parts: [...files, ...sums, ...dones, ...last],
    plan: (identify) =>
      makePlacement(facts, {
        before: [],
        content: files.map(identify),
        after: [sums.map(identify), dones.map(identify), last.map(identify)],
      }),
  };
}

function beside(name: string, as: string) {
  return { from: "beside", name, as } as const;
}

/** Empty for a folder in the inbox itself. */
function parentOf(path: string): string {
  const parent = posix.dirname(path);
  return parent === "." ? "" : parent;
}
