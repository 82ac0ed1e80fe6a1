/** Records the simulated service's answers as files for nginx: the same bytes, without the cost of computing them. */
import { createWriteStream } from "node:fs";
import { mkdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { forEachLimit } from "../../src/base/concurrency.ts";
import { WANTED_FIELDS } from "../../src/mailbox/list-fields.ts";
import { LAUNCHER, type RunningSimulator, startSimulator } from "./simulator.ts";

export const PASSWORD = "Sunny+Harbour%42";
export const CLIENT_ID = "Measured".repeat(8);
export const MAILBOX = "orders@example.com";
const PAGE_ENTRIES = 100;
const REQUESTS_AT_ONCE = 8;
/** The fields that Inlet selects. */
const FIELDS = WANTED_FIELDS;

export interface Wanted {
  readonly transfers: number;
  /** In each transfer. */
  readonly files: number;
  /** Of each file. */
  readonly bytes: number;
  readonly zip?: boolean;
  /** For polls: only the list is recorded. */
  readonly listOnly?: boolean;
}

interface RecordedFile {
  readonly id: string;
  readonly name: string;
  readonly sha256: string;
}

interface RecordedTransfer {
  readonly trackingId: string;
  readonly transferId: string;
  readonly files: readonly RecordedFile[];
}

export interface RecordedService {
  /** For nginx. */
  readonly site: string;
  readonly transfers: readonly RecordedTransfer[];
  readonly pages: number;
}

/** `folder` must not exist yet. */
export async function recordService(folder: string, wanted: Wanted): Promise<RecordedService> {
  const site = join(folder, "site");
  await mkdir(join(site, "lists"), { recursive: true });
  await mkdir(join(site, "plain"));
  const files = Array.from({ length: wanted.files }, (_, at) => ({
    name: `file-${at + 1}.bin`,
    generate: { bytes: wanted.bytes },
  }));
  const transfer = { from: "anna@supplier.example", to: [MAILBOX], password: PASSWORD, files };
  const transfers = Array.from({ length: wanted.transfers }, () => transfer);
  await using simulator = await startSimulator(LAUNCHER, folder, { transfers });
  const ask = await verifyAddress(simulator);
  const pages = await recordLists(ask, join(site, "lists"));
  const recorded: RecordedTransfer[] = simulator.transfers.map((it) => ({ ...it, files: [] }));
  if (!wanted.listOnly) {
    await forEachLimit([...recorded.entries()], REQUESTS_AT_ONCE, async ([at, it]) => {
      recorded[at] = { ...it, files: await recordTransfer(ask, site, it.transferId, wanted.zip === true) };
    });
  }
  return { site, transfers: recorded, pages };
}

type Ask = (path: string) => Promise<Response>;

/** Returns a function that requests a path with all credentials. */
async function verifyAddress({ url, clientId }: RunningSimulator): Promise<Ask> {
  const known = {
    "X-CS-MajorApiVersion": "1",
    "X-CS-MinimumMinorApiVersion": "12",
    "X-CS-ProductKey": "api.rest",
    "X-CS-ClientId": clientId,
  };
  const tokenUrl = `${url}/api/users/${encodeURIComponent(MAILBOX)}/verification/token`;
  const verified = await fetch(tokenUrl, { method: "POST", headers: known });
  const { data } = (await verified.json()) as { readonly data: { readonly token: string } };
  const headers = {
    ...known,
    "X-CS-VerificationToken": data.token,
    "X-CS-Password": encodeURIComponent(PASSWORD),
  };
  return async (path) => {
    const answer = await fetch(`${url}${path}`, { headers });
    if (!answer.ok) throw new Error(`the simulated service answers ${answer.status} to ${path}`);
    return answer;
  };
}

/** Records all pages including the empty one at the end, and the light request without one. Returns the number of pages before. */
async function recordLists(ask: Ask, folder: string): Promise<number> {
  const list = `/api/users/${encodeURIComponent(MAILBOX)}/transfers/received-transfers`;
  await writeFile(join(folder, ".json"), await (await ask(`${list}?page-size=1`)).text());
  for (let page = 1; ; page++) {
    const query = `page=${page}&page-size=${PAGE_ENTRIES}&active=true&fields=${encodeURIComponent(FIELDS)}`;
    const text = await (await ask(`${list}?${query}`)).text();
    await writeFile(join(folder, `${page}.json`), text);
    if (!text.includes("trackingId")) return page - 1;
  }
}

async function recordTransfer(
  ask: Ask,
  site: string,
  transferId: string,
  zip: boolean,
): Promise<RecordedFile[]> {
  const folder = join(site, "transfers", transferId);
  const content = join(folder, "content");
  await mkdir(content, { recursive: true });
  const at = `/api/transfers/${transferId}`;
  const save = async (path: string, name: string) => {
    const { body } = await ask(path);
    if (body !== null) await pipeline(body, createWriteStream(join(folder, name)));
  };
  await save(at, "information.json");
  await save(`${at}/checksums`, "checksums.csv");
  if (zip) await save(`${at}/zip`, "all.zip");
  const text = await (await ask(`${at}/files`)).text();
  await writeFile(join(folder, "files.json"), text);
  const files = readFiles(text);
  for (const { id } of files) await save(`${at}/files/${id}`, join("content", id));
  // For programs that read a folder.
  await symlink(content, join(site, "plain", transferId));
  return files;
}

function readFiles(text: string): RecordedFile[] {
  const { data } = JSON.parse(text) as {
    readonly data: readonly { readonly id: string; readonly fileName: string; readonly checksum: string }[];
  };
  return data.map(({ id, fileName, checksum }) => ({ id, name: fileName, sha256: checksum }));
}

/** Changes the order of the entries on every page of the list. */
export async function changePages({ site, pages }: RecordedService): Promise<void> {
  for (let page = 1; page <= pages; page++) {
    const text = await readFile(join(site, "lists", `${page}.json`), "utf8");
    const { data } = JSON.parse(text) as { readonly data: readonly unknown[] };
    await replacePage(site, page, [...data.slice(1), data[0]]);
  }
}

/** An entry of the list, apart from facts that stay as they are. */
interface ListEntry {
  readonly trackingId: string;
  readonly status: { readonly recipients: readonly { readonly id: string }[] };
}

/** Replaces the list by these transfers, all with the facts and the content of the first recorded one. */
export async function listAgain(
  { site, transfers }: RecordedService,
  entries: readonly { readonly trackingId: string; readonly transferId: string }[],
): Promise<void> {
  const text = await readFile(join(site, "lists", "1.json"), "utf8");
  const [listed] = (JSON.parse(text) as { readonly data: readonly ListEntry[] }).data;
  const [first] = transfers;
  if (first === undefined || listed === undefined) throw new Error("there is no transfer to repeat");
  for (const { transferId } of entries) {
    await symlink(join(site, "transfers", first.transferId), join(site, "transfers", transferId)).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      },
    );
  }
  const data = entries.map(({ trackingId, transferId }) => {
    const recipients = listed.status.recipients.map((recipient) => ({ ...recipient, id: transferId }));
    return { ...listed, trackingId, status: { ...listed.status, recipients } };
  });
  await replacePage(site, 1, data);
}

/** Atomically, so that no poll reads half a page. */
async function replacePage(site: string, page: number, data: readonly unknown[]): Promise<void> {
  const lists = join(site, "lists");
  await writeFile(join(lists, "new"), JSON.stringify({ data }));
  await rename(join(lists, "new"), join(lists, `${page}.json`));
}
