/**
 * A disk in memory. It loses unsynced changes in a power cut, and the bytes of a file whose sync failed.
 *
 * Assumptions about real disks: a file's bytes are durable after the file is synced, a name after its folder is synced. A
 * rename is one change, durable after the target folder is synced; it never leaves both names or neither. Every change that
 * is not durable may survive a power cut or not, independently of the others. After a failed sync its bytes may be on the
 * disk or not, and readers see them until they leave the cache. Later syncs succeed, and make later bytes durable.
 */

import { constants } from "node:fs";
import { NEEDED_AFTER_TROUBLE, NEEDED_BYTES } from "../../../src/inbox/work-folder.ts";
import type { Random } from "./random.ts";

const {
  O_CREAT,
  O_EXCL,
  O_TRUNC,
  O_APPEND,
  O_WRONLY,
  O_RDWR,
  O_RDONLY,
  O_NOFOLLOW,
  O_DIRECTORY,
  O_NONBLOCK,
} = constants;

/** Others are numbered from here on. */
const FIRST_DEVICE = 1;

/** Before the number of an open folder. */
const OPEN = "/proc/self/fd/";

/** Through how many links a path may lead. */
const MAX_HOPS = 10;

const MAX_KNOWN_FOLDERS = 5_000;

abstract class Entry {
  abstract readonly kind: "file" | "folder" | "link" | "pipe";
  readonly ino: number;
  /** The file system that it is on. */
  dev = FIRST_DEVICE;
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

const NOTHING = Buffer.alloc(0);
const NONE_LOST: FileEntry["lost"] = [];

export class FileEntry extends Entry {
  readonly kind = "file";
  /** A change replaces the buffer, and never writes into it: snapshots share it. */
  bytes: Buffer = NOTHING;
  durableBytes: Buffer = NOTHING;
  /** The file goes on with zeros up to this size, and takes no room for them. */
  sparseBytes = 0;
  /** Where syncs have failed: these bytes will never be on the disk. */
  lost: readonly { readonly from: number; readonly until: number }[] = NONE_LOST;

  get size(): number {
    return Math.max(this.bytes.length, this.sparseBytes);
  }

  failSync(): void {
    this.lost = [...this.lost, { from: this.durableBytes.length, until: this.bytes.length }];
  }
}

export class FolderEntry extends Entry {
  readonly kind = "folder";
  entries = new Map<string, AnyEntry>();
  durableEntries = new Map<string, AnyEntry>();
  parent: FolderEntry | undefined;
  name = "";
  /** Changes of its names that are not durable, in their order. */
  unsynced: NameChange[] = [];
  /** As `pathOf` last found it. Only if the same is known of its parent. */
  knownPath: string | undefined;
  /** Those who are told of its entries. Missing: none. */
  listeners: Set<FolderListener> | undefined;

  tell(name: string): void {
    if (this.listeners === undefined) return;
    for (const listener of this.listeners) listener.changed(name);
  }
}

/** Is told of each entry of a folder that was added, changed or removed, at that moment. */
export interface FolderListener {
  changed(name: string): void;
}

class LinkEntry extends Entry {
  readonly kind = "link";
  target = "";
}

/** Has no writer, ever. */
class PipeEntry extends Entry {
  readonly kind = "pipe";
}

export type AnyEntry = FileEntry | FolderEntry | LinkEntry | PipeEntry;

/** A disk as others can begin with. */
export interface DiskImage {
  readonly root: AnyEntry;
  readonly inodes: number;
  readonly ticks: number;
}

/** A copy of what was at a path, apart from every disk. */
export interface Snapshot {
  readonly entry: AnyEntry;
}

interface Location {
  readonly folder: FolderEntry;
  readonly name: string;
}

/** A name that was added, moved or removed, and is not durable yet. */
interface NameChange extends Location {
  /** Increases with each change. */
  readonly number: number;
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
  #root: FolderEntry;
  isFull = false;
  onChange: OnChange = () => {};
  /** Called when a program reads a whole file that would fill the memory. */
  onLargeRead: (path: string, bytes: number) => void = () => {};
  /** Those in which the changes of some names are not durable. */
  readonly #unsynced = new Set<FolderEntry>();
  /** By their paths, as they were asked for. Emptied whenever a path may lead elsewhere. */
  readonly #folders = new Map<string, FolderEntry>();
  #changes = 0;
  #inodes = 0;
  #ticks = 0;
  /** By the number of their descriptor. */
  readonly #open = new Map<number, OpenEntry>();
  #nextDescriptor = 3;
  readonly #nowMs: () => number;
  readonly #mounts: readonly string[];

  /** `nowMs`: the clock for the times of files. `mounts`: folders that are file systems of their own. */
  constructor(nowMs: () => number, mounts: readonly string[] = ["/state"]) {
    this.#nowMs = nowMs;
    this.#mounts = mounts;
    this.#root = new FolderEntry(this.#nextInode(), 0o755, 0);
  }

  get root(): FolderEntry {
    return this.#root;
  }

  // Looking

  /** Follows links in the middle of the path, and at its end if `isFollowed`. */
  find(path: string, isFollowed = false, hops = 0): Found {
    const at = path.lastIndexOf("/");
    const name = path.slice(at + 1);
    if (isNoName(name) || (at === OPEN.length - 1 && path.startsWith(OPEN))) {
      const folder = this.#folderAt(path, hops, path);
      return { folder: folder.parent ?? folder, name: folder.name, entry: folder };
    }
    const folder = at <= 0 ? this.#root : this.#folderAt(path.slice(0, at), hops, path);
    const entry = folder.entries.get(name);
    if (!isFollowed || entry?.kind !== "link") return { folder, name, entry };
    if (hops === MAX_HOPS) throw failure("ELOOP", path);
    return this.find(targetOf(entry, folder), true, hops + 1);
  }

  /** `whole`: the path that is looked for, for errors. */
  #folderAt(path: string, hops: number, whole: string): FolderEntry {
    const known = this.#folders.get(path);
    if (known !== undefined) return known;
    const at = path.lastIndexOf("/");
    const name = path.slice(at + 1);
    if (at === OPEN.length - 1 && path.startsWith(OPEN)) return this.#openFolder(Number(name), whole);
    const parent = at <= 0 ? this.#root : this.#folderAt(path.slice(0, at), hops, whole);
    if (name === "" || name === ".") return parent;
    const entry = name === ".." ? parent.parent : parent.entries.get(name);
    if (entry?.kind === "link") {
      if (hops === MAX_HOPS) throw failure("ELOOP", whole);
      return this.#folderAt(targetOf(entry, parent), hops + 1, whole);
    }
    const folder = asFolder(entry, whole);
    if (this.#folders.size > MAX_KNOWN_FOLDERS) this.#folders.clear();
    // The numbers of open folders are not forgotten with them.
    if (!path.startsWith(OPEN)) this.#folders.set(path, folder);
    return folder;
  }

  #openFolder(fd: number, path: string): FolderEntry {
    const open = this.#open.get(fd)?.entry;
    if (open?.kind !== "folder") throw failure("ENOENT", path);
    return open;
  }

  /** A path without `/proc/self/fd`. */
  nameOf(path: string): string {
    if (!path.startsWith(OPEN)) return path;
    const end = path.indexOf("/", OPEN.length);
    const open = this.#open.get(Number(path.slice(OPEN.length, end < 0 ? path.length : end)))?.entry;
    if (open?.kind !== "folder") return path;
    return end < 0 ? pathOf(open) : `${pathOf(open)}${path.slice(end)}`;
  }

  get(path: string, isFollowed = false): AnyEntry {
    const { entry } = this.find(path, isFollowed);
    if (entry === undefined) throw failure("ENOENT", path);
    return entry;
  }

  tryGet(path: string): AnyEntry | undefined {
    // Most paths are in folders that are known, and errors are slow.
    const at = path.lastIndexOf("/");
    const folder = this.#folders.get(path.slice(0, at));
    if (folder !== undefined && !isNoName(path.slice(at + 1))) return folder.entries.get(path.slice(at + 1));
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

  /** The bytes of all files below a path; a file with several names counts once. */
  usedBytes(path: string): number {
    const seen = new Set<FileEntry>();
    let used = 0;
    const add = (entry: AnyEntry) => {
      if (entry.kind === "folder") for (const child of entry.entries.values()) add(child);
      if (entry.kind !== "file" || seen.has(entry)) return;
      seen.add(entry);
      used += entry.bytes.length;
    };
    const entry = this.tryGet(path);
    if (entry !== undefined) add(entry);
    return used;
  }

  // Changing

  makeFolder(path: string, mode: number, uid: number, gid?: number): FolderEntry {
    const found = this.find(path);
    if (found.entry !== undefined) throw failure("EEXIST", path);
    this.#demandRoom(path, found);
    const made = new FolderEntry(this.#nextInode(), mode, uid);
    made.parent = found.folder;
    made.name = found.name;
    inherit(made, found.folder, gid);
    const real = realPath(found);
    const mount = this.#mounts.indexOf(real);
    if (mount >= 0) made.dev = FIRST_DEVICE + 1 + mount;
    this.onChange({ type: "create", path: real, entry: made });
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

  open(path: string, flags: string | number, mode: number, uid: number, gid?: number): OpenEntry {
    const bits = typeof flags === "number" ? flags : flagBits(flags);
    const found = this.find(path, (bits & (O_NOFOLLOW | O_EXCL)) === 0);
    let { entry } = found;
    if (entry !== undefined && bits & O_CREAT && bits & O_EXCL) throw failure("EEXIST", path);
    if (entry?.kind === "link") throw failure("ELOOP", path);
    if (entry === undefined) {
      if ((bits & O_CREAT) === 0) throw failure("ENOENT", path);
      this.#demandRoom(path, found);
      entry = new FileEntry(this.#nextInode(), mode, uid);
      inherit(entry, found.folder, gid);
      this.onChange({ type: "create", path: realPath(found), entry });
      this.#touch(entry);
      this.#setName(found, entry);
    }
    const isWriting = (bits & (O_WRONLY | O_RDWR)) !== 0;
    if (bits & O_DIRECTORY && entry.kind !== "folder") throw failure("ENOTDIR", path);
    if (entry.kind === "folder" && isWriting) throw failure("EISDIR", path);
    const isPipe = entry.kind === "pipe";
    if (isPipe && isWriting && bits & O_NONBLOCK) throw failure("ENXIO", path);
    const isBlocked = isPipe && (bits & O_NONBLOCK) === 0;
    const opened = new OpenEntry(this, { ...found, entry }, this.#nextDescriptor++, isBlocked);
    if (bits & O_TRUNC && entry.kind === "file") opened.truncate();
    if (!isBlocked) this.#open.set(opened.fd, opened);
    return opened;
  }

  /** The paths of files and folders that are open. */
  get openPaths(): string[] {
    return [...this.#open.values()].map(({ path }) => path);
  }

  close(fd: number): void {
    this.#open.delete(fd);
  }

  write(entry: FileEntry, path: string, content: string | Uint8Array): void {
    this.#demandRoom(path);
    this.onChange({ type: "write", path, entry });
    entry.bytes = withContent(entry.bytes, content);
    this.#touch(entry);
  }

  truncate(entry: FileEntry, path: string): void {
    this.onChange({ type: "write", path, entry });
    entry.bytes = NOTHING;
    entry.sparseBytes = 0;
    entry.lost = NONE_LOST;
    this.#touch(entry);
  }

  rename(from: string, to: string): void {
    const source = this.find(from);
    const target = this.find(to);
    const { entry } = source;
    if (entry === undefined || isRemoved(target.folder)) throw failure("ENOENT", from);
    demandOneDevice(source, target, from);
    if (target.entry === entry) return;
    const replaced = target.entry;
    if (replaced !== undefined) {
      if (entry.kind === "folder" && replaced.kind !== "folder") throw failure("ENOTDIR", to);
      if (entry.kind !== "folder" && replaced.kind === "folder") throw failure("EISDIR", to);
      if (replaced.kind === "folder" && replaced.entries.size > 0) throw failure("ENOTEMPTY", to);
    }
    this.onChange({ type: "rename", path: realPath(target), from: realPath(source), entry, replaced });
    this.#forgetPaths(entry);
    if (replaced !== undefined) this.#forgetPaths(replaced);
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
    source.folder.tell(source.name);
    target.folder.tell(target.name);
  }

  link(from: string, to: string): void {
    const source = this.find(from);
    const { entry } = source;
    if (entry === undefined) throw failure("ENOENT", from);
    if (entry.kind === "folder") throw failure("EPERM", from);
    const target = this.find(to);
    demandOneDevice(source, target, from);
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
    inherit(made, found.folder);
    made.target = target;
    this.#setName(found, made);
  }

  unlink(path: string): void {
    const found = this.find(path);
    if (found.entry === undefined) throw failure("ENOENT", path);
    if (found.entry.kind === "folder") throw failure("EISDIR", path);
    this.onChange({ type: "remove", path: realPath(found), entry: found.entry });
    this.#forgetPaths(found.entry);
    this.#setName(found, undefined);
  }

  removeFolder(path: string): void {
    const found = this.find(path);
    if (found.entry === undefined) throw failure("ENOENT", path);
    if (found.entry.kind !== "folder") throw failure("ENOTDIR", path);
    if (found.entry.entries.size > 0) throw failure("ENOTEMPTY", path);
    this.onChange({ type: "remove", path: realPath(found), entry: found.entry });
    this.#forgetPaths(found.entry);
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

  /** A negative number keeps the one that is there. */
  setOwner(entry: AnyEntry, uid: number, gid: number): void {
    if (uid >= 0) entry.uid = uid;
    if (gid >= 0) entry.gid = gid;
    entry.changed = ++this.#ticks;
  }

  // Images

  /** All that is on the disk now, for others to begin with. */
  image(): DiskImage {
    const root = this.#copy(this.#root, (entry) => entry.ino);
    return { root, inodes: this.#inodes, ticks: this.#ticks };
  }

  /** Replaces everything. Nothing may be open or watched. */
  loadImage({ root, inodes, ticks }: DiskImage): void {
    this.#root = this.#copy(root, (entry) => entry.ino) as FolderEntry;
    this.#inodes = inodes;
    this.#ticks = ticks;
    this.#folders.clear();
    this.#unsynced.clear();
    this.#open.clear();
  }

  // What people do. All of it is durable at once.

  /** A file of this size that takes no room. */
  makeSparse(path: string, bytes: number, uid: number): void {
    const entry = new FileEntry(this.#nextInode(), 0o644, uid);
    entry.sparseBytes = bytes;
    this.#graft(this.#findFree(path), entry);
  }

  /** Opening it waits for a writer, which never comes. */
  makePipe(path: string, uid: number): void {
    this.#graft(this.#findFree(path), new PipeEntry(this.#nextInode(), 0o644, uid));
  }

  snapshot(path: string): Snapshot {
    return { entry: this.#copy(this.get(path), (entry) => entry.ino) };
  }

  /** Replaces what is there, as somebody who restores a backup: everything is new but the times of the last changes. */
  restore(path: string, { entry }: Snapshot): void {
    this.#clear(path);
    this.#graft(this.#findFree(path), this.#copyAnew(entry));
  }

  /** As `restore` from another path. `without`: names that are left out, wherever they are. */
  copyTree(
    from: string,
    to: string,
    { without }: { readonly without?: (name: string) => boolean } = {},
  ): void {
    const copy = this.#copyAnew(this.get(from), without);
    this.#graft(this.#findFree(to), copy);
  }

  /** Another file system gets a copy. */
  moveTree(from: string, to: string): void {
    const source = this.find(from);
    const target = this.find(to);
    if (source.entry?.dev !== target.folder.dev) {
      this.copyTree(from, to);
      this.#clear(from);
      return;
    }
    this.rename(from, to);
    const { folder, name } = target;
    this.#settle(source.folder, source.name);
    this.#settle(folder, name);
  }

  #clear(path: string): void {
    const { folder, name } = this.find(path);
    this.removeTree(path);
    this.#settle(folder, name);
  }

  #findFree(path: string): Location {
    const { folder, name, entry } = this.find(path);
    if (entry !== undefined) throw failure("EEXIST", path);
    return { folder, name };
  }

  /** Gives an entry and all below it a durable name. */
  #graft({ folder, name }: Location, entry: AnyEntry): void {
    const visit = (parent: FolderEntry, at: string, each: AnyEntry) => {
      const path = `${pathOf(parent)}/${at}`;
      const mount = this.#mounts.indexOf(path);
      each.dev = mount < 0 ? parent.dev : FIRST_DEVICE + 1 + mount;
      if (each.kind === "folder") Object.assign(each, { parent, name: at });
      this.onChange({ type: "create", path, entry: each });
      if (each.kind === "folder") for (const [below, child] of each.entries) visit(each, below, child);
    };
    visit(folder, name, entry);
    if (entry.modified === 0) this.#touch(entry);
    this.#setName({ folder, name }, entry);
    this.#settle(folder, name);
  }

  /** What this name is now is durable. */
  #settle(folder: FolderEntry, name: string): void {
    for (const change of folder.unsynced) if (change.name === name) applyDurably(change);
    folder.unsynced = folder.unsynced.filter((change) => change.name !== name);
    if (folder.unsynced.length === 0) this.#unsynced.delete(folder);
  }

  #copyAnew(entry: AnyEntry, without?: (name: string) => boolean): AnyEntry {
    return this.#copy(
      entry,
      () => this.#nextInode(),
      without,
      () => ++this.#ticks,
    );
  }

  /** What readers see is durable in the copy. A file with several names stays one. */
  #copy(
    original: AnyEntry,
    inodeOf: (entry: AnyEntry) => number,
    without: (name: string) => boolean = () => false,
    changedOf: (entry: AnyEntry) => number = (entry) => entry.changed,
  ): AnyEntry {
    const copies = new Map<AnyEntry, AnyEntry>();
    const copy = (entry: AnyEntry): AnyEntry => {
      const known = copies.get(entry);
      if (known !== undefined) return known;
      const made = emptyCopy(entry, inodeOf(entry));
      copies.set(entry, made);
      made.gid = entry.gid;
      made.dev = entry.dev;
      made.modifiedMs = entry.modifiedMs;
      made.modified = entry.modified;
      made.changed = changedOf(entry);
      if (entry.kind !== "folder" || made.kind !== "folder") return made;
      for (const [name, child] of entry.entries) {
        if (without(name)) continue;
        const below = copy(child);
        if (below.kind === "folder") {
          below.parent = made;
          below.name = name;
        }
        made.entries.set(name, below);
      }
      made.durableEntries = new Map(made.entries);
      return made;
    };
    return copy(original);
  }

  /** The bytes of a file that a program reads as a whole. */
  contentOf(entry: AnyEntry, path: string): Buffer {
    if (entry.kind !== "file") throw failure("EISDIR", path);
    const { size, bytes } = entry;
    if (size === bytes.length) return bytes;
    if (size > LARGE_READ_BYTES) {
      this.onLargeRead(path, size);
      throw failure("EIO", path);
    }
    return Buffer.concat([bytes, Buffer.alloc(size - bytes.length)]);
  }

  // Durability

  sync(entry: AnyEntry): void {
    if (entry.kind === "file") entry.durableBytes = withoutLost(entry);
    if (entry.kind !== "folder" || entry.unsynced.length === 0) return;
    for (const change of entry.unsynced) applyDurably(change);
    entry.unsynced = [];
    this.#unsynced.delete(entry);
  }

  syncAll(): void {
    for (const change of this.#takeUnsynced()) applyDurably(change);
  }

  /** All changes in their order, which count as done. */
  #takeUnsynced(): NameChange[] {
    const folders = [...this.#unsynced];
    const changes = folders.flatMap((folder) => folder.unsynced);
    for (const folder of folders) folder.unsynced = [];
    this.#unsynced.clear();
    return changes.sort((one, other) => one.number - other.number);
  }

  powerCut(random: Random): void {
    for (const change of this.#takeUnsynced()) if (random.chance(0.5)) applyDurably(change);
    this.#open.clear();
    const seen = new Set<AnyEntry>();
    const visit = (entry: AnyEntry) => {
      if (seen.has(entry)) return;
      seen.add(entry);
      if (entry.kind === "file") entry.bytes = survivingBytes(entry, random);
      if (entry.kind === "file") Object.assign(entry, { durableBytes: entry.bytes, lost: NONE_LOST });
      if (entry.kind !== "folder") return;
      entry.entries = new Map(entry.durableEntries);
      for (const [name, child] of entry.entries) {
        if (child.kind === "folder") Object.assign(child, { parent: entry, name, knownPath: undefined });
        visit(child);
      }
    };
    visit(this.#root);
    this.#folders.clear();
  }

  /** The bytes whose sync failed leave the cache. Returns whether there were any. */
  dropCaches(): boolean {
    let isChanged = false;
    for (const { entry } of this.walk("/")) {
      if (entry.kind !== "file" || entry.lost.length === 0) continue;
      entry.bytes = withoutLost(entry);
      isChanged = true;
    }
    return isChanged;
  }

  #demandRoom(path: string, found?: Location): void {
    if (found !== undefined && isRemoved(found.folder)) throw failure("ENOENT", path);
    if (this.isFull) throw failure("ENOSPC", path);
  }

  #setName({ folder, name }: Location, entry: AnyEntry | undefined): void {
    if (entry === undefined) folder.entries.delete(name);
    else folder.entries.set(name, entry);
    this.#note(folder, name, entry, []);
    this.#touch(folder);
    folder.tell(name);
  }

  #note(folder: FolderEntry, name: string, entry: AnyEntry | undefined, from: readonly Location[]): void {
    if (folder.unsynced.length === 0) this.#unsynced.add(folder);
    folder.unsynced.push({ number: ++this.#changes, folder, name, entry, from });
  }

  /** A name that never became durable is replaced by the new one. */
  #noteRename(source: Location, { folder, name }: Location, entry: AnyEntry): void {
    const { folder: fromFolder, name: fromName } = source;
    const { unsynced } = fromFolder;
    const at = unsynced.findLastIndex((change) => change.entry === entry && change.name === fromName);
    const before = at < 0 ? undefined : unsynced[at];
    if (before !== undefined) unsynced.splice(at, 1);
    if (unsynced.length === 0) this.#unsynced.delete(fromFolder);
    const earlier = { folder: fromFolder, name: fromName };
    this.#note(folder, name, entry, before === undefined ? [earlier] : [...before.from, earlier]);
  }

  /** Paths that led to this entry, or through it, lead elsewhere from now on. */
  #forgetPaths(entry: AnyEntry): void {
    if (entry.kind === "folder") forgetPath(entry);
    if (entry.kind === "folder" || entry.kind === "link") this.#folders.clear();
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
  /** The open never ends: it waits for the writer of a pipe. */
  readonly isBlocked: boolean;
  readonly #disk: SimulatedDisk;
  readonly #at: Location;

  constructor(
    disk: SimulatedDisk,
    { entry, ...at }: Location & { readonly entry: AnyEntry },
    fd: number,
    isBlocked: boolean,
  ) {
    this.#disk = disk;
    this.#at = at;
    this.entry = entry;
    this.fd = fd;
    this.path = realPath(at);
    this.isBlocked = isBlocked;
  }

  get file(): FileEntry {
    if (this.entry.kind !== "file") throw failure("EISDIR", this.path);
    return this.entry;
  }

  write(content: string | Uint8Array): void {
    this.#disk.write(this.file, this.path, content);
    this.#tell();
  }

  truncate(): void {
    this.#disk.truncate(this.file, this.path);
    this.#tell();
  }

  setMode(mode: number): void {
    this.#disk.setMode(this.entry, mode);
    this.#tell();
  }

  read(buffer: Uint8Array, position: number): number {
    if (this.entry.kind === "pipe") return 0;
    const { bytes, size } = this.file;
    const length = Math.max(0, Math.min(buffer.byteLength, size - position));
    const chunk = bytes.subarray(position, position + length);
    buffer.set(chunk);
    buffer.fill(0, chunk.byteLength, length);
    return length;
  }

  readText(): string {
    return this.entry.kind === "pipe" ? "" : this.#disk.contentOf(this.entry, this.path).toString();
  }

  close(): void {
    this.#disk.close(this.fd);
  }

  /** Unless it has another name by now. */
  #tell(): void {
    const { folder, name } = this.#at;
    if (folder.listeners !== undefined && folder.entries.get(name) === this.entry) folder.tell(name);
  }
}

/** A larger file is not read as a whole. */
const LARGE_READ_BYTES = 1024 * 1024;

const SET_GROUP = 0o2000;

/** What a new entry has from its folder. */
function inherit(made: AnyEntry, folder: FolderEntry, gid = 0): void {
  const isGiven = (folder.mode & SET_GROUP) !== 0;
  made.dev = folder.dev;
  made.gid = isGiven ? folder.gid : gid;
  if (isGiven && made.kind === "folder") made.mode |= SET_GROUP;
}

function demandOneDevice({ entry }: Found, { folder }: Found, path: string): void {
  if (entry?.dev !== folder.dev) throw failure("EXDEV", path);
}

/** Without the entries of a folder. */
function emptyCopy(entry: AnyEntry, ino: number): AnyEntry {
  const { mode, uid } = entry;
  if (entry.kind === "folder") return new FolderEntry(ino, mode, uid);
  if (entry.kind === "pipe") return new PipeEntry(ino, mode, uid);
  if (entry.kind === "link") {
    const link = new LinkEntry(ino, mode, uid);
    link.target = entry.target;
    return link;
  }
  const file = new FileEntry(ino, mode, uid);
  file.bytes = file.durableBytes = entry.bytes;
  file.sparseBytes = entry.sparseBytes;
  return file;
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

/** The last part of a path is no name of an entry. */
function isNoName(name: string): boolean {
  return name === "" || name === "." || name === "..";
}

function asFolder(entry: AnyEntry | undefined, path: string): FolderEntry {
  if (entry?.kind === "folder") return entry;
  throw failure(entry === undefined ? "ENOENT" : "ENOTDIR", path);
}

export function pathOf(folder: FolderEntry): string {
  if (folder.parent === undefined) return "";
  folder.knownPath ??= `${pathOf(folder.parent)}/${folder.name}`;
  return folder.knownPath;
}

function forgetPath(folder: FolderEntry): void {
  if (folder.knownPath === undefined) return;
  folder.knownPath = undefined;
  for (const entry of folder.entries.values()) if (entry.kind === "folder") forgetPath(entry);
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
  const folderAt = path.lastIndexOf("/", path.lastIndexOf("/") - 1);
  const error: NodeJS.ErrnoException = new Error(`${code}: ${path.slice(folderAt + 1)}`);
  error.code = code;
  error.syscall = "simulated";
  error.path = path;
  return error;
}

/** What daemons write again and again, to see whether they can. All of it together would fill the memory. */
const PROBE = Buffer.alloc(NEEDED_BYTES);
const LARGE_PROBE = Buffer.alloc(NEEDED_AFTER_TROUBLE.bytes);

/** In a buffer of its own. */
function withContent(before: Buffer, content: string | Uint8Array): Buffer {
  if (typeof content !== "string" && isProbe(content)) return PROBE;
  const added = Buffer.from(content as Uint8Array);
  return before.length === 0 ? added : Buffer.concat([before, added]);
}

function isProbe(content: Uint8Array): boolean {
  return PROBE.equals(content) || LARGE_PROBE.equals(content);
}
