/** `verify`: hashes delivered folders again, and compares them with their manifests and sums. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import { systemCode } from "../base/faults.ts";
import { formatCount, formatSize } from "../base/phrases.ts";
import { loadSettings } from "../config/load.ts";
import { handoffsOf } from "../config/settings.ts";
import { addExitCodes, type Context, invalid, type Outcome, type Runner } from "./command.ts";
import { type CheckedFolder, checkFolder, type FoundDelivery, findDeliveries } from "./delivered-folder.ts";
import { type CommonOptions, gather } from "./options.ts";
import { formatJson, printable, say, startProgress, writeOut } from "./printing.ts";

const HELP = `
It reads every file below FOLDER again. Deliveries without a transfer.json are found by the configuration, until they
are picked up.

  ok          as it was delivered
  changed     other content, another size, or no longer a plain file
  missing     no longer there
  extra       there, but not delivered by Inlet; permit it with --allow
  unreadable  this user may not read it, or the disk fails

A user who can change the files can also change the manifest and the sums beside them: keep a copy of SHA256SUMS
elsewhere to detect that.`;

export function define(command: Command, run: Runner): void {
  command
    .argument("<folder...>", "delivered folders, or folders above them")
    .option(
      "--allow <name>",
      "a file name to permit, such as one that a consumer adds; may be repeated",
      gather,
    )
    .option(
      "--config <file>",
      "the configuration file, which names the marker (default: as for run, if it exists)",
    )
    .option("--json", "print every folder with its files as JSON")
    .addHelpText("after", HELP)
    .action(run(verifyFolders));
  addExitCodes(command, { fine: "everything is as it was delivered", attention: "something differs" });
}

async function verifyFolders(
  context: Context,
  folders: readonly string[],
  options: CommonOptions & { readonly allow?: readonly string[] },
): Promise<Outcome> {
  for (const folder of folders) await demandFolder(folder);
  const { config: path, json } = options;
  const load = { env: context.env, path, ignoreSecrets: true };
  // The configuration is optional, unless `--config` names it.
  const unlessNeeded = (error: unknown) => (path === undefined ? undefined : Promise.reject(error));
  const known = await loadSettings(load).catch(unlessNeeded);
  const added =
    known && handoffsOf(known).flatMap(({ marker, acknowledgement }) => [marker, acknowledgement]);
  const allowed = new Set([...(options.allow ?? []), ...(added ?? [])].filter((name) => name !== undefined));
  const format = json ? formatEntry : formatFolder;
  const tally = { folders: 0, files: 0, bytes: 0, troubles: 0 };
  for (const root of folders) {
    const { folders: foldersBefore, troubles: troublesBefore } = tally;
    const complain = (folder: string, why: string) => {
      tally.troubles++;
      say(context, `inlet: ${folder} ${why}.`);
    };
    const onUnreadable = (folder: string, code: string) => complain(folder, `cannot be read (${code})`);
    for await (const delivery of findDeliveries(root, known, onUnreadable, context.stop)) {
      const checked = await checkWithProgress(context, delivery, allowed);
      await writeOut(context, format(checked, context, tally.folders));
      tally.folders++;
      tally.files += checked.files.length;
      tally.bytes += checked.bytes;
      tally.troubles += Number(checked.status !== "ok");
    }
    const isEmpty = tally.folders === foldersBefore && tally.troubles === troublesBefore;
    if (isEmpty && folders.length === 1) throw invalid(`${root} ${NOTHING}`);
    if (isEmpty) complain(root, NOTHING);
  }
  if (json) context.stdout.write(tally.folders === 0 ? "[]\n" : "\n]\n");
  say(context, summaryOf(tally));
  return tally.troubles === 0 ? "fine" : "attention";
}

const NOTHING = "holds no delivered folder: none in it has a transfer.json";

async function checkWithProgress(
  context: Context,
  delivery: FoundDelivery,
  allowed: ReadonlySet<string>,
): Promise<CheckedFolder> {
  const progress = startProgress(context, delivery.folder, undefined);
  try {
    return await checkFolder(delivery, allowed, (bytes) => progress.advance(bytes), context.stop);
  } finally {
    progress.end();
  }
}

async function demandFolder(folder: string): Promise<void> {
  const facts = await stat(folder).catch((cause: unknown) => {
    const code = systemCode(cause);
    throw invalid(`${folder} ${code === "ENOENT" ? "does not exist" : `cannot be read (${code})`}`, cause);
  });
  if (!facts.isDirectory()) throw invalid(`${folder} is not a folder`);
}

/** One document, written folder by folder: a tree may hold more than fits into memory. `at`: its place, from 0. */
function formatEntry(checked: CheckedFolder, _context: Context, at: number): string {
  return `${at === 0 ? "[" : ","}\n${formatJson(checked)}`;
}

/** A terminal gets the folder and its differences. A pipe gets a line per file. */
function formatFolder({ folder, status, problem, bytes, files }: CheckedFolder, { stdout }: Context): string {
  if (!stdout.isTTY) {
    const rows = problem === undefined ? files : [{ name: "", status, detail: problem }];
    const lines = rows.map((row) => [row.status, join(folder, row.name), row.detail ?? ""].map(printable));
    return lines.map((cells) => `${cells.join("\t")}\n`).join("");
  }
  const mark = styleText(status === "ok" ? "green" : "red", status.padEnd(7), { stream: stdout });
  const size = formatSize({ files: files.length, bytes });
  const troubles = files.filter((file) => file.status !== "ok");
  const lines = [
    `${mark}  ${printable(folder)}  (${printable(problem ?? size)})`,
    ...troubles.map((it) =>
      `         ${it.status}: ${printable(it.name)} ${printable(it.detail ?? "")}`.trimEnd(),
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function summaryOf({ folders, files, bytes, troubles }: Tally): string {
  const what = `${formatCount(folders, "folder", "folders")}, ${formatSize({ files, bytes })}`;
  if (troubles === 0) return `${what}: all as they were delivered.`;
  return `${what}: ${formatCount(troubles, "folder differs", "folders differ")} from what was delivered.`;
}

type Tally = Readonly<Record<"folders" | "files" | "bytes" | "troubles", number>>;
