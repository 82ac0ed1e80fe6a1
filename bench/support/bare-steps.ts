/**
 * The requests of small transfers, and about as many file-system calls as Inlet makes for them, and nothing else: the
 * least that a Node program needs for the same promise. Arguments: the base URL, and how many transfers at once. The
 * list of transfers is in `transfers.json`, and the folders are below `out`, both in the current folder.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Pool } from "undici";
import { Coalesced, forEachLimit } from "../../src/base/concurrency.ts";
import type { RecordedService } from "./recording.ts";

const open = promisify(fs.open);
const write = promisify(fs.writeFile);
const stat = promisify(fs.fstat);
const sync = promisify(fs.fsync);
const close = promisify(fs.close);
const [link, rename, unlink] = [promisify(fs.link), promisify(fs.rename), promisify(fs.unlink)];
const [lstat, statfs] = [promisify(fs.lstat), promisify(fs.statfs)];

type Transfer = RecordedService["transfers"][number];

/** Keeps the folder open. A sync serves all who wait for it. */
function openFolder(name: string): Coalesced {
  fs.mkdirSync(join("out", name), { recursive: true });
  const folder = fs.openSync(join("out", name), "r");
  return new Coalesced(() => sync(folder));
}

const [staging, ledger, inbox] = [openFolder("staging"), openFolder("ledger"), openFolder("inbox")];
const attempts = openFolder("attempts");
const [url = "", atOnce = ""] = process.argv.slice(2);
const pool = new Pool(url, { connections: Number(atOnce) * 4 });
const transfers = JSON.parse(fs.readFileSync("transfers.json", "utf8")) as Transfer[];
await forEachLimit(transfers, Number(atOnce), deliver);
await pool.close();

async function deliver({ transferId, files }: Transfer): Promise<void> {
  for (const name of ["ledger/end", "ledger/begin", "attempts/one", "attempts/other"]) {
    await lookFor(`out/${name}-${transferId}`);
  }
  await close(await open(`out/attempts/${transferId}`, "wx"));
  await attempts.run();
  const base = `/api/transfers/${transferId}`;
  JSON.parse((await get(base)).toString());
  JSON.parse((await get(`${base}/files`)).toString());
  await get(`${base}/checksums`);
  const staged = `out/staging/${transferId}`;
  const ticket = await open(`${staged}.ticket`, "wx");
  fs.mkdirSync(staged);
  await statfs("out");
  await forEachLimit(files, files.length, async ({ id }) => {
    const content = await get(`${base}/files/${id}`);
    await put(join(staged, id), content);
    createHash("sha256").update(content).digest("hex");
  });
  await forEachLimit(["manifest", "sums"], 2, (name) => put(join(staged, name), Buffer.alloc(600)));
  await syncFolder(staged);
  await staging.run();
  await lookFor(`out/inbox/${transferId}`);
  await write(ticket, Buffer.alloc(600));
  await sync(ticket);
  await close(ticket);
  await link(`${staged}.ticket`, `out/ledger/${transferId}`);
  await ledger.run();
  await rename(staged, `out/inbox/${transferId}`);
  await inbox.run();
  await unlink(`${staged}.ticket`);
  await unlink(`out/attempts/${transferId}`);
}

async function get(path: string): Promise<Buffer> {
  const { body } = await pool.request({ path, method: "GET", headers: { accept: "*/*" } });
  return Buffer.from(await body.arrayBuffer());
}

async function put(path: string, content: Uint8Array): Promise<void> {
  const file = await open(path, "wx");
  await write(file, content);
  await stat(file);
  await sync(file);
  await close(file);
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  await sync(folder);
  await close(folder);
}

async function lookFor(path: string): Promise<void> {
  await lstat(path).catch(() => {});
}
