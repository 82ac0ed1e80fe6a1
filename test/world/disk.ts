/**
 * A disk in memory. It loses unsynced changes in a power cut, and the bytes of a file whose sync failed.
 *
 * Assumptions about real disks: a file's bytes are durable after the file is synced, a name after its folder is synced. A
 * rename is one change, durable after the target folder is synced; it never leaves both names or neither. Every change that
 * is not durable may survive a power cut or not, independently of the others. After a failed sync its bytes may be on the
 * disk or not, and readers see them until they leave the cache. Later syncs succeed, and make later bytes durable.
 */

import { constants } from "node:fs";
import { basename, dirname } from "node:path";
import { NEEDED_AFTER_TROUBLE, NEEDED_BYTES } from "../../src/inbox/work-folder.ts";
import type { Random } from "./random.ts";

const { O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_WRONLY, O_RDWR, O_RDONLY, O_NOFOLLOW, O_DIRECTORY } = constants;

abstract class Entry {
  abstract readonly kind: "file" | "folder" | "link";
  readonly ino: number;
  mode: number;
  uid: number;
  gid = 0;
  modifiedMs = 0;
  /** Increase with each change of any entry: of its content, and of anything. */
  modified = 0;
  changed = 0;

  constructor(ino: number, mode: number, uid: number) {
    this.ino = ino;
    this.mode = mode;
    this.uid = uid;
  }
}

export class FileEntry extends Entry {
  readonly kind = "file";
  bytes: Buffer = Buffer.alloc(0);
  durableBytes: Buffer = Buffer.alloc(0);
  /** Where syncs have failed: these bytes will never be on the disk. */
  lost: { readonly from: number; readonly until: number }[] = [];

  failSync(): void {
    this.lost.push({ from: this.durableBytes.length, until: this.bytes.length });
  }
}

export class FolderEntry extends Entry {
  readonly kind = "folder";
  entries = new Map<string, AnyEntry>();
  durableEntries = new Map<string, AnyEntry>();
  parent: FolderEntry | undefined;
  name = "";
}

class LinkEntry extends Entry {
  readonly kind = "link";
  target = "";
}

export type AnyEntry = FileEntry | FolderEntry | LinkEntry;

interface Location {
  readonly folder: FolderEntry;
  readonly name: string;
}

/** A name that was added, moved or removed, and is not durable yet. */
interface NameChange extends Location {
  /** Missing for a removed name. */
  readonly entry: AnyEntry | undefined;
  /** Earlier names of an entry that was renamed. */
  readonly from: readonly Location[];
}

export interface Found extends Location {
  readonly entry: AnyEntry | undefined;
}

/** Called for each change, before it happens. Throws to prevent it. */
export type OnChange = (change: {
  readonly type: "create" | "write" | "rename" | "remove" | "change";
  /** The real path: no link leads elsewhere. */
  readonly path: string;
  readonly from?: string;
  readonly entry?: AnyEntry | undefined;
  /** The entry that a rename replaces. */
  readonly replaced?: AnyEntry | undefined;
}) => void;

export class SimulatedDisk {
  readonly root: FolderEntry;
  isFull = false;
  onChange: OnChange = () => {};
  #changes: NameChange[] = [];
  #inodes = 0;
  #ticks = 0;
  /** By the number of their descriptor. */
  readonly #open = new Map<number, OpenEntry>();
  #nextDescriptor = 3;
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.root = new FolderEntry(this.#nextInode(), 0o755, 0);
  }

  // Looking

  /** Follows links in the middle of the path, and at its end if `isFollowed`. */
  find(path: string, isFollowed = false, hops = 0): Found {
    if (hops > 10) throw failure("ELOOP", path);
    let { folder, segments } = this.#start(path);
    for (;;) {
      const [name, ...rest] = segments;
      if (name === undefined) return { folder: folder.parent ?? folder, name: folder.name, entry: folder };
      const entry = name === ".." ? folder.parent : folder.entries.get(name);
      const isLast = rest.length === 0;
      if (entry?.kind === "link" && (isFollowed || !isLast)) {
        return this.find([targetOf(entry, folder), ...rest].join("/"), isFollowed, hops + 1);
      }
      if (isLast && name !== "..") return { folder, name, entry };
      [folder, segments] = [asFolder(entry, path), rest];
    }
  }

  /** The folder that a path starts from: the root, or an open one. */
  #start(path: string): { folder: FolderEntry; segments: string[] } {
    const segments = path.split("/").filter((part) => part !== "" && part !== ".");
    const [proc, self, fd, number, ...rest] = segments;
    if (proc !== "proc" || self !== "self" || fd !== "fd") return { folder: this.root, segments };
    const open = this.#open.get(Number(number))?.entry;
    if (open?.kind !== "folder") throw failure("ENOENT", path);
    return { folder: open, segments: rest };
  }

  /** A path without `/proc/self/fd`. */
  nameOf(path: string): string {
    if (!path.startsWith("/proc/")) return path;
    try {
      const { folder, segments } = this.#start(path);
      return [pathOf(folder), ...segments].join("/");
    } catch {
      return path;
    }
  }

  get(path: string, isFollowed = false): AnyEntry {
    const { entry } = this.find(path, isFollowed);
    if (entry === undefined) throw failure("ENOENT", path);
    return entry;
  }

  tryGet(path: string): AnyEntry | undefined {
    try {
      return this.find(path).entry;
    } catch {
      return undefined;
    }
  }

  folder(path: string): FolderEntry {
    const entry = this.get(path, true);
    if (entry.kind !== "folder") throw failure("ENOTDIR", path);
    return entry;
  }

  /** The text of a file; `undefined` without one. */
  text(path: string): string | undefined {
    const entry = this.tryGet(path);
    return entry?.kind === "file" ? entry.bytes.toString() : undefined;
  }

  /** The names in a folder; none without one. */
  names(path: string): string[] {
    const entry = this.tryGet(path);
    return entry?.kind === "folder" ? [...entry.entries.keys()].toSorted() : [];
  }

  /** Every file below a folder, with its path. */
  *walk(path: string): Iterable<{ readonly path: string; readonly entry: AnyEntry }> {
    const entry = this.tryGet(path);
    if (entry === undefined) return;
    yield { path, entry };
    if (entry.kind === "folder") for (const name of entry.entries.keys()) yield* this.walk(`${path}/${name}`);
  }

  // Changing

  makeFolder(path: string, mode: number, uid: number): FolderEntry {
    const found = this.find(path);
    if (found.entry !== undefined) throw failure("EEXIST", path);
    this.#demandRoom(path, found);
    const made = new FolderEntry(this.#nextInode(), mode, uid);
    made.parent = found.folder;
    made.name = found.name;
    this.onChange({ type: "create", path: realPath(found), entry: made });
    this.#touch(made);
    this.#setName(found, made);
    return made;
  }

  /** Creates every missing folder of a path. Nothing of it is lost in a power cut. */
  prepare(path: string, mode: number, uid: number): void {
    const parts = path.split("/").filter((part) => part !== "");
    for (let depth = 1; depth <= parts.length; depth++) {
      const each = `/${parts.slice(0, depth).join("/")}`;
      if (this.tryGet(each) === undefined) this.makeFolder(each, mode, uid);
    }
    this.syncAll();
  }

  open(path: string, flags: string | number, mode: number, uid: number): OpenEntry {
    const bits = typeof flags === "number" ? flags : flagBits(flags);
    const found = this.find(path, (bits & (O_NOFOLLOW | O_EXCL)) === 0);
    let { entry } = found;
    if (entry !== undefined && bits & O_CREAT && bits & O_EXCL) throw failure("EEXIST", path);
    if (entry?.kind === "link") throw failure("ELOOP", path);
    if (entry === undefined) {
      if ((bits & O_CREAT) === 0) throw failure("ENOENT", path);
      this.#demandRoom(path, found);
      entry = new FileEntry(this.#nextInode(), mode, uid);
      this.onChange({ type: "create", path: realPath(found), entry });
      this.#touch(entry);
      this.#setName(found, entry);
    }
    const isWriting = (bits & (O_WRONLY | O_RDWR)) !== 0;
    if (bits & O_DIRECTORY && entry.kind !== "folder") throw failure("ENOTDIR", path);
    if (entry.kind === "folder" && isWriting) throw failure("EISDIR", path);
    if (bits & O_TRUNC && entry.kind === "file") this.truncate(entry, realPath(found));
    const opened = new OpenEntry(this, entry, this.#nextDescriptor++, realPath(found));
    this.#open.set(opened.fd, opened);
    return opened;
  }

  /** The paths of files and folders that are open. */
  get openPaths(): string[] {
    return [...this.#open.values()].map(({ path }) => path);
  }

  close(fd: number): void {
    this.#open.delete(fd);
  }

  write(entry: FileEntry, path: string, content: Uint8Array): void {
    this.#demandRoom(path);
    this.onChange({ type: "write", path, entry });
    entry.bytes = isProbe(content) ? PROBE : Buffer.concat([entry.bytes, content]);
    this.#touch(entry);
  }

  truncate(entry: FileEntry, path: string): void {
    this.onChange({ type: "write", path, entry });
    entry.bytes = Buffer.alloc(0);
    entry.lost = [];
    this.#touch(entry);
  }

  rename(from: string, to: string): void {
    const source = this.find(from);
    const target = this.find(to);
    const { entry } = source;
    if (entry === undefined || isRemoved(target.folder)) throw failure("ENOENT", from);
    if (target.entry === entry) return;
    const replaced = target.entry;
    if (replaced !== undefined) {
      if (entry.kind === "folder" && replaced.kind !== "folder") throw failure("ENOTDIR", to);
      if (entry.kind !== "folder" && replaced.kind === "folder") throw failure("EISDIR", to);
      if (replaced.kind === "folder" && replaced.entries.size > 0) throw failure("ENOTEMPTY", to);
    }
    this.onChange({ type: "rename", path: realPath(target), from: realPath(source), entry, replaced });
    source.folder.entries.delete(source.name);
    target.folder.entries.set(target.name, entry);
    this.#noteRename(source, target, entry);
    if (entry.kind === "folder") {
      entry.parent = target.folder;
      entry.name = target.name;
    }
    this.#touch(source.folder);
    this.#touch(target.folder);
    entry.changed = ++this.#ticks;
  }

  link(from: string, to: string): void {
    const entry = this.get(from);
    if (entry.kind === "folder") throw failure("EPERM", from);
    const target = this.find(to);
    if (target.entry !== undefined) throw failure("EEXIST", to);
    this.#demandRoom(to, target);
    this.onChange({ type: "create", path: realPath(target), entry });
    this.#setName(target, entry);
    entry.changed = ++this.#ticks;
  }

  symlink(target: string, path: string, uid: number): void {
    const found = this.find(path);
    if (found.entry !== undefined) throw failure("EEXIST", path);
    const made = new LinkEntry(this.#nextInode(), 0o777, uid);
    made.target = target;
    this.#setName(found, made);
  }

  unlink(path: string): void {
    const found = this.find(path);
    if (found.entry === undefined) throw failure("ENOENT", path);
    if (found.entry.kind === "folder") throw failure("EISDIR", path);
    this.onChange({ type: "remove", path: realPath(found), entry: found.entry });
    this.#setName(found, undefined);
  }

  removeFolder(path: string): void {
    const found = this.find(path);
    if (found.entry === undefined) throw failure("ENOENT", path);
    if (found.entry.kind !== "folder") throw failure("ENOTDIR", path);
    if (found.entry.entries.size > 0) throw failure("ENOTEMPTY", path);
    this.onChange({ type: "remove", path: realPath(found), entry: found.entry });
    this.#setName(found, undefined);
  }

  removeTree(path: string): void {
    const entry = this.tryGet(path);
    if (entry === undefined) return;
    if (entry.kind === "folder") {
      for (const name of [...entry.entries.keys()]) this.removeTree(`${path}/${name}`);
      this.removeFolder(path);
    } else this.unlink(path);
  }

  setMode(entry: AnyEntry, mode: number): void {
    entry.mode = mode;
    entry.changed = ++this.#ticks;
  }

  // Durability

  sync(entry: AnyEntry): void {
    if (entry.kind === "file") entry.durableBytes = withoutLost(entry);
    if (entry.kind !== "folder") return;
    const [own, others] = [[] as NameChange[], [] as NameChange[]];
    for (const change of this.#changes) (change.folder === entry ? own : others).push(change);
    for (const change of own) applyDurably(change);
    this.#changes = others;
  }

  syncAll(): void {
    for (const change of this.#changes) applyDurably(change);
    this.#changes = [];
  }

  powerCut(random: Random): void {
    for (const change of this.#changes) if (random.chance(0.5)) applyDurably(change);
    this.#changes = [];
    this.#open.clear();
    const seen = new Set<AnyEntry>();
    const visit = (entry: AnyEntry) => {
      if (seen.has(entry)) return;
      seen.add(entry);
      if (entry.kind === "file") entry.bytes = survivingBytes(entry, random);
      if (entry.kind === "file") Object.assign(entry, { durableBytes: entry.bytes, lost: [] });
      if (entry.kind !== "folder") return;
      entry.entries = new Map(entry.durableEntries);
      for (const [name, child] of entry.entries) {
        if (child.kind === "folder") Object.assign(child, { parent: entry, name });
        visit(child);
      }
    };
    visit(this.root);
  }

  /** The bytes whose sync failed leave the cache. */
  dropCaches(): void {
    for (const { entry } of this.walk("/")) {
      if (entry.kind === "file") entry.bytes = withoutLost(entry);
    }
  }

  #demandRoom(path: string, found?: Location): void {
    if (found !== undefined && isRemoved(found.folder)) throw failure("ENOENT", path);
    if (this.isFull) throw failure("ENOSPC", path);
  }

  #setName({ folder, name }: Location, entry: AnyEntry | undefined): void {
    if (entry === undefined) folder.entries.delete(name);
    else folder.entries.set(name, entry);
    this.#changes.push({ folder, name, entry, from: [] });
    this.#touch(folder);
  }

  /** A name that never became durable is replaced by the new one. */
  #noteRename(source: Location, { folder, name }: Location, entry: AnyEntry): void {
    const at = this.#changes.findLastIndex(
      (change) => change.entry === entry && change.folder === source.folder && change.name === source.name,
    );
    const before = at < 0 ? undefined : this.#changes[at];
    if (before !== undefined) this.#changes.splice(at, 1);
    const { folder: fromFolder, name: fromName } = source;
    const from = [...(before?.from ?? []), { folder: fromFolder, name: fromName }];
    this.#changes.push({ folder, name, entry, from });
  }

  #touch(entry: AnyEntry): void {
    entry.modifiedMs = this.#nowMs();
    entry.modified = entry.changed = ++this.#ticks;
  }

  #nextInode(): number {
    return ++this.#inodes;
  }
}

/** An open file or folder. */
export class OpenEntry {
  readonly fd: number;
  readonly entry: AnyEntry;
  readonly path: string;
  readonly #disk: SimulatedDisk;

  constructor(disk: SimulatedDisk, entry: AnyEntry, fd: number, path: string) {
    this.#disk = disk;
    this.entry = entry;
    this.fd = fd;
    this.path = path;
  }

  get file(): FileEntry {
    if (this.entry.kind !== "file") throw failure("EISDIR", this.path);
    return this.entry;
  }

  write(content: string | Uint8Array): void {
    this.#disk.write(this.file, this.path, typeof content === "string" ? Buffer.from(content) : content);
  }

  read(buffer: Uint8Array, position: number): number {
    const chunk = this.file.bytes.subarray(position, position + buffer.byteLength);
    buffer.set(chunk);
    return chunk.byteLength;
  }

  close(): void {
    this.#disk.close(this.fd);
  }
}

function flagBits(flags: string): number {
  const known: Readonly<Record<string, number>> = {
    r: O_RDONLY,
    w: O_WRONLY | O_CREAT | O_TRUNC,
    wx: O_WRONLY | O_CREAT | O_EXCL,
    "wx+": O_RDWR | O_CREAT | O_EXCL,
    a: O_WRONLY | O_CREAT | O_APPEND,
    "a+": O_RDWR | O_CREAT | O_APPEND,
    "ax+": O_RDWR | O_CREAT | O_EXCL | O_APPEND,
  };
  const bits = known[flags];
  if (bits === undefined) throw new TypeError(`the simulated disk does not know the flags ${flags}`);
  return bits;
}

function applyDurably({ folder, name, entry, from }: NameChange): void {
  for (const each of from) {
    if (each.folder.durableEntries.get(each.name) === entry) each.folder.durableEntries.delete(each.name);
  }
  if (entry === undefined) folder.durableEntries.delete(name);
  else folder.durableEntries.set(name, entry);
}

function survivingBytes(entry: FileEntry, random: Random): Buffer {
  const { durableBytes } = entry;
  const bytes = withoutLost(entry);
  if (bytes === durableBytes || random.chance(0.3)) return bytes;
  if (random.chance(0.5)) return durableBytes;
  // The size is on the disk, and only a part of the bytes.
  const torn = Buffer.from(bytes);
  return torn.fill(0, Math.max(durableBytes.length, random.int(bytes.length + 1)));
}

/** With zeros in place of the bytes that are lost. */
function withoutLost({ bytes, lost }: FileEntry): Buffer {
  if (lost.length === 0) return bytes;
  const left = Buffer.from(bytes);
  for (const { from, until } of lost) left.fill(0, from, until);
  return left;
}

function targetOf({ target }: LinkEntry, folder: FolderEntry): string {
  return target.startsWith("/") ? target : `${pathOf(folder)}/${target}`;
}

function asFolder(entry: AnyEntry | undefined, path: string): FolderEntry {
  if (entry?.kind === "folder") return entry;
  throw failure(entry === undefined ? "ENOENT" : "ENOTDIR", path);
}

export function pathOf(folder: FolderEntry): string {
  return folder.parent === undefined ? "" : `${pathOf(folder.parent)}/${folder.name}`;
}

/** An open folder that was removed gets no new entries. */
function isRemoved(folder: FolderEntry): boolean {
  return folder.parent !== undefined && folder.parent.entries.get(folder.name) !== folder;
}

function realPath({ folder, name }: Location): string {
  return `${pathOf(folder)}/${name}`;
}

/** An error as the system gives it. */
export function failure(code: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${basename(dirname(path))}/${basename(path)}`), {
    code,
    syscall: "simulated",
    path,
  });
}

/** What daemons write again and again, to see whether they can. All of it together would fill the memory. */
const PROBE = Buffer.alloc(NEEDED_BYTES);
const LARGE_PROBE = Buffer.alloc(NEEDED_AFTER_TROUBLE.bytes);

function isProbe(content: Uint8Array): boolean {
  return PROBE.equals(content) || LARGE_PROBE.equals(content);
}
