/**
 * What one transfer of three files does to the disk, and nothing else: no request, no hash, no text to make. Run by itself
 * with a folder and a number of transfers, it takes so many of these steps, four transfers at a time.
 */
import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { isMainThread, Worker, workerData } from "node:worker_threads";

const AT_ONCE = 4;
/** Three files, the manifest and the checksums. */
const FILE_BYTES = [10_240, 10_240, 10_240, 1_200, 230];
const FOLDERS = ["new", "open", "done", "spent", "staging", "handoff", "inbox"];

interface Share {
  readonly folder: string;
  readonly first: number;
  readonly count: number;
}

if (isMainThread) {
  const [folder = ".", count = "1"] = process.argv.slice(2);
  for (const name of FOLDERS) mkdirSync(join(folder, name));
  for (let first = 0; first < AT_ONCE; first++) {
    const share: Share = { folder, first, count: Number(count) };
    new Worker(new URL(import.meta.url), { workerData: share });
  }
} else {
  const { folder, first, count } = workerData as Share;
  for (let number = first; number < count; number += AT_ONCE) takeSteps(folder, `transfer-${number}`);
}

function takeSteps(folder: string, name: string): void {
  const at = (...parts: readonly string[]) => join(folder, ...parts);
  const ledger = at("open", name);
  const record = join(ledger, "1");
  const staging = at("staging", name);
  const claim = join(staging, "1");
  const content = join(claim, "content");

  // It is new, and somebody claims it.
  mkdirSync(ledger);
  for (const number of ["0", "1"]) {
    const draft = at("new", `${name}-${number}`);
    make(draft, 400);
    linkSync(draft, join(ledger, number));
    unlinkSync(draft);
    syncFolder(ledger);
  }
  syncFolder(at("open"));
  unlinkSync(join(ledger, "0"));

  // A password is about to be sent, and was accepted.
  make(at("spent", name), 0);
  syncFolder(at("spent"));
  append(record);
  append(record);
  unlinkSync(at("spent", name));

  // Its content.
  for (const made of [staging, claim, content]) mkdirSync(made);
  for (const [number, bytes] of FILE_BYTES.entries()) make(join(content, String(number)), bytes);
  for (const synced of [content, claim, staging, at("staging")]) syncFolder(synced);

  // It is delivered, and whoever hands it over is told.
  append(record);
  renameSync(content, at("inbox", name));
  syncFolder(at("inbox"));
  syncFolder(claim);
  make(at("new", name), 375);
  renameSync(at("new", name), at("handoff", name));
  syncFolder(at("handoff"));

  // Its record is the final one, and nothing else of it is left.
  append(record);
  linkSync(record, at("done", name));
  syncFolder(at("done"));
  unlinkSync(record);
  for (const removed of [ledger, claim, staging]) rmdirSync(removed);
}

function make(path: string, bytes: number): void {
  const file = openSync(path, "wx");
  if (bytes > 0) writeSync(file, Buffer.alloc(bytes, "x"));
  fsyncSync(file);
  closeSync(file);
}

function append(path: string): void {
  const file = openSync(path, "a");
  writeSync(file, Buffer.alloc(450, "x"));
  fdatasyncSync(file);
  closeSync(file);
}

function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  fsyncSync(folder);
  closeSync(folder);
}
