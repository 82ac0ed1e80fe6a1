/** `verify`: hashes delivered folders again, and compares them with their manifests and sums. */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import { systemCode } from "../base/faults.ts";
import { formatBytes, formatCount } from "../base/phrases.ts";
import { loadAddedNames, loadFolders } from "../config/load.ts";
import {
  addExitCodes,
  type CommonOptions,
  type Context,
  invalid,
  type Outcome,
  type Run,
} from "./command.ts";
import {
  type CheckedFolder,
  checkFolder,
  type FoundDelivery,
  findDelivered,
  findItsManifest,
  findWithoutManifest,
} from "./delivered-folder.ts";
import { gather } from "./options.ts";
import { formatJson, printable, say, startProgress, writeOut } from "./printing.ts";

interface VerifyOptions extends CommonOptions {
  readonly allow?: readonly string[];
}

const HELP = `
Each FOLDER is a delivered one, or a tree in which every delivery is verified: folders with a transfer.json inside or
beside them, and single files with one. Every file is read again: its SHA-256 must be the one in transfer.json and in
SHA256SUMS, and the sender's own checksum must match. Deliveries without a transfer.json are found by the configuration,
until they are picked up.

  ok          as it was delivered
  changed     other content, another size, or no longer a plain file
  missing     no longer there
  extra       there, but not delivered by Inlet; permit it with --allow
  unreadable  this user may not read it, or the disk fails

A user who can change the files can also change the manifest and the sums beside
them. To detect that, keep a copy of SHA256SUMS elsewhere.

  inlet verify /srv/inbox
  inlet verify /srv/inbox/orders@example.com/anna@supplier.example/20260301-080000-fewfiles`;

export function define(command: Command, run: Run): void {
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
  options: VerifyOptions,
): Promise<Outcome> {
  for (const folder of folders) await demandFolder(folder);
  const { config: path } = options;
  const load = { env: context.env, path };
  // The configuration is optional, unless `--config` names it.
  const isNeeded = path !== undefined;
  const added = await loadAddedNames(load).catch((error) => (isNeeded ? Promise.reject(error) : []));
  const known = await loadFolders(load).catch((error) => (isNeeded ? Promise.reject(error) : undefined));
  const allowed = new Set([...(options.allow ?? []), ...added]);
  const print = options.json ? printerAsJson(context) : printerAsLines(context);
  const tally = { folders: 0, files: 0, bytes: 0, troubles: 0 };
  for (const root of folders) {
    const { folders: foldersBefore, troubles: troublesBefore } = tally;
    const complain = (folder: string, why: string) => {
      tally.troubles++;
      say(context, `inlet: ${folder} ${why}.`);
    };
    const deliveriesIn = async function* (below: string) {
      yield* findItsManifest(resolve(below));
      yield* findDelivered(
        below,
        (folder, code) => complain(folder, `cannot be read (${code})`),
        context.stop,
      );
      if (known !== undefined) yield* findWithoutManifest(resolve(below), known);
    };
    for await (const delivery of deliveriesIn(root)) {
      const checked = await checkWithProgress(context, delivery, allowed);
      tally.folders++;
      tally.files += checked.files.length;
      tally.bytes += checked.bytes;
      if (checked.status !== "ok") tally.troubles++;
      await print.folder(checked);
    }
    const isEmpty = tally.folders === foldersBefore && tally.troubles === troublesBefore;
    if (isEmpty && folders.length === 1) throw invalid(`${root} ${NOTHING}`);
    if (isEmpty) complain(root, NOTHING);
  }
  print.end();
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

interface Printer {
  folder(checked: CheckedFolder): Promise<void>;
  end(): void;
}

/** One document, written folder by folder: a tree may hold more than fits into memory. */
function printerAsJson(context: Context): Printer {
  let isFirst = true;
  return {
    async folder(checked) {
      await writeOut(context, `${isFirst ? "[" : ","}\n${formatJson(checked)}`);
      isFirst = false;
    },
    end: () => void context.stdout.write(isFirst ? "[]\n" : "\n]\n"),
  };
}

/** A terminal gets the folders and their differences. A pipe gets a line per file. */
function printerAsLines(context: Context): Printer {
  const { stdout } = context;
  return {
    async folder({ folder, status, problem, bytes, files }) {
      const troubles = files.filter((file) => file.status !== "ok");
      if (!stdout.isTTY) {
        const rows = problem === undefined ? files : [{ name: "", status, detail: problem }];
        const lines = rows.map((row) =>
          [row.status, join(folder, row.name), row.detail ?? ""].map(printable),
        );
        return writeOut(context, lines.map((cells) => `${cells.join("\t")}\n`).join(""));
      }
      const mark = styleText(status === "ok" ? "green" : "red", status.padEnd(7), { stream: stdout });
      const size = `${formatCount(files.length, "file", "files")}, ${formatBytes(bytes)}`;
      const lines = [
        `${mark}  ${printable(folder)}  (${printable(problem ?? size)})`,
        ...troubles.map((it) =>
          `         ${it.status}: ${printable(it.name)} ${printable(it.detail ?? "")}`.trimEnd(),
        ),
      ];
      return writeOut(context, `${lines.join("\n")}\n`);
    },
    end() {},
  };
}

function summaryOf({ folders, files, bytes, troubles }: Tally): string {
  const what = `${formatCount(folders, "folder", "folders")}, ${formatCount(files, "file", "files")}, ${formatBytes(bytes)}`;
  if (troubles === 0) return `${what}: all as they were delivered.`;
  return `${what}: ${formatCount(troubles, "folder differs", "folders differ")} from what was delivered.`;
}

type Tally = Readonly<Record<"folders" | "files" | "bytes" | "troubles", number>>;
