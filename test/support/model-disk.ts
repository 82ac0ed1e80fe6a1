/**
 * A folder tree in memory that behaves like a disk, and loses unsynced changes in a power cut.
 *
 * Assumptions about real disks: a file's text is durable after the file is synced, a name after its folder is synced. A
 * rename is one change, durable after the target folder is synced; it never leaves both names or neither. Every change that
 * is not durable may survive a power cut or not, independently of the others.
 */
import { hash } from "node:crypto";
import { join } from "node:path";
import type { Disk, DiskFile, DiskFolder, EntryKind } from "../../src/base/disk.ts";

/** Each text that occurs on a disk has a small number. */
const numbers = new Map<string, number>();

function numberOf(text: string): number {
  const known = numbers.get(text);
  if (known !== undefined) return known;
  numbers.set(text, numbers.size);
  return numbers.size - 1;
}

class ModelFile {
  readonly kind = "file";
  /** The path of its creation, which identifies it. */
  readonly origin: string;
  readonly number: number;
  text = "";
  syncedText = "";

  constructor(origin: string, number = numberOf(origin)) {
    this.origin = origin;
    this.number = number;
  }
}

class ModelFolder {
  readonly kind = "folder";
  readonly origin: string;
  readonly number: number;
  entries = new Map<string, Node>();
  /** The entries that survive a power cut. */
  syncedEntries = new Map<string, Node>();
  /** A removed folder may still be open, and gets no new entries. */
  isRemoved = false;

  constructor(origin: string, number = numberOf(origin)) {
    this.origin = origin;
    this.number = number;
  }
}

class ModelLink {
  readonly kind = "link";
  readonly origin: string;
  readonly number: number;

  constructor(origin: string) {
    this.origin = origin;
    this.number = numberOf(origin);
  }
}

type Node = ModelFile | ModelFolder | ModelLink;

interface Location {
  readonly folder: ModelFolder;
  readonly name: string;
}

/** A name that was added, moved or removed. */
interface NameChange extends Location {
  /** Counts all changes of the disk. */
  readonly number: number;
  /** Missing for a removed name. */
  readonly node: Node | undefined;
  /** Earlier names of a node that was renamed. All but the first were never durable. */
  readonly from: readonly Location[];
}

/** A change that a power cut may undo: of a name, or of a file's text. */
export type Change = NameChange | ModelFile;

type Entries = (folder: ModelFolder) => Map<string, Node>;

interface ModelDiskOptions {
  /** Without hard links, as on some file servers. */
  readonly hasLinks?: boolean;
}

export class ModelDisk implements Disk {
  readonly #root: ModelFolder;
  /** In order. */
  #nameChanges: NameChange[] = [];
  #lastNumber = 0;
  #version = 0;
  #digest: { readonly version: number; readonly text: string } | undefined;
  readonly #unsyncedFiles = new Set<ModelFile>();
  /** Open folders by their descriptor, and how often each is open. Two openings of one folder share its descriptor. */
  readonly #open = new Map<string, { readonly folder: ModelFolder; times: number }>();
  readonly #options: ModelDiskOptions;

  constructor(options: ModelDiskOptions = {}, root = new ModelFolder("/")) {
    this.#options = options;
    this.#root = root;
  }

  /** Changes that are not durable yet. */
  unsynced(): Change[] {
    return [...this.#nameChanges, ...this.#unsyncedFiles];
  }

  /** The number of the last change of a name. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** A new disk with all durable changes and the surviving unsynced ones. */
  powerCut(survivors: ReadonlySet<Change> = new Set()): ModelDisk {
    const left = new Map<ModelFolder, Map<string, Node>>();
    const entriesOf: Entries = (folder) => {
      const known = left.get(folder) ?? new Map(folder.syncedEntries);
      left.set(folder, known);
      return known;
    };
    for (const change of this.#nameChanges) {
      // Nothing can move into a lost folder.
      const isLost = change.from.length > 0 && !isBelow(this.#root, change.folder, entriesOf);
      if (survivors.has(change) && !isLost) applyTo(entriesOf, change);
    }
    const root = copyOf(this.#root, entriesOf, survivors, new Map()) as ModelFolder;
    return new ModelDisk(this.#options, root);
  }

  /** The same disk after every process has stopped: nothing is lost. */
  copy(): ModelDisk {
    return this.powerCut(new Set(this.unsynced()));
  }

  /** Equal for disks that behave alike from now on, also after a power cut. */
  digest(): string {
    if (this.#digest?.version === this.#version) return this.#digest.text;
    const facts: number[] = [];
    const nodes = new Set<Node>([this.#root]);
    for (const node of nodes) {
      if (node.kind === "file") facts.push(pack(0, node.number, node.text, numberOf(node.syncedText)));
      if (node.kind === "folder") addEntries(node, nodes, facts);
    }
    for (const [descriptor, { folder }] of this.#open) {
      if (folder.isRemoved) facts.push(pack(5, folder.number, descriptor, NOTHING));
    }
    for (const { folder, name, node, from } of this.#nameChanges) {
      facts.push(pack(3, folder.number, name, node?.number ?? NOTHING));
      for (const location of from)
        facts.push(pack(4, location.folder.number, location.name, node?.number ?? NOTHING));
    }
    const text = hash("sha1", new Uint8Array(Float64Array.from(facts).sort().buffer), "base64");
    this.#digest = { version: this.#version, text };
    return text;
  }

  /** Differs after each change of anything. */
  get version(): number {
    return this.#version;
  }

  /** A power cut would not change anything at or below this path. */
  isDurable(path: string): boolean {
    const node = this.#find(path);
    return node !== undefined && isSynced(node);
  }

  /** Every file in a folder, by relative path. */
  filesBelow(path: string): Map<string, string> {
    const files = new Map<string, string>();
    const walk = (folder: ModelFolder, prefix: string) => {
      for (const [name, node] of folder.entries) {
        if (node.kind === "file") files.set(`${prefix}${name}`, node.text);
        if (node.kind === "folder") walk(node, `${prefix}${name}/`);
      }
    };
    const folder = this.#find(path);
    if (folder?.kind === "folder") walk(folder, "");
    return files;
  }

  textOf(path: string): string | undefined {
    const file = this.#find(path);
    return file?.kind === "file" ? file.text : undefined;
  }

  namesIn(path: string): string[] {
    const folder = this.#find(path);
    return folder?.kind === "folder" ? [...folder.entries.keys()].sort() : [];
  }

  makeLink(path: string): void {
    const location = this.#locate(path, "symlink");
    this.#set(location, new ModelLink(path), []);
  }

  async create(path: string, _mode: number): Promise<DiskFile> {
    const location = this.#locate(path, "open");
    if (location.folder.entries.has(location.name)) throw systemError("EEXIST", "open", path);
    const file = new ModelFile(path);
    this.#set(location, file, []);
    return this.#openFile(file);
  }

  async truncate(path: string): Promise<DiskFile> {
    const file = this.#need(path, "open");
    if (file.kind !== "file") throw systemError("EISDIR", "open", path);
    this.#write(file, "");
    return this.#openFile(file);
  }

  async read(path: string): Promise<string> {
    const file = this.#need(path, "open");
    if (file.kind !== "file") throw systemError("EISDIR", "read", path);
    return file.text;
  }

  async list(path: string): Promise<string[]> {
    return [...this.#needFolder(path, "scandir").entries.keys()].sort();
  }

  async kindOf(path: string): Promise<EntryKind | undefined> {
    return this.#find(path)?.kind;
  }

  /** The model has no clock. */
  async modifiedMs(): Promise<undefined> {
    return undefined;
  }

  async link(from: string, to: string): Promise<void> {
    const file = this.#need(from, "link");
    const location = this.#locate(to, "link");
    if (location.folder.entries.has(location.name)) throw systemError("EEXIST", "link", to);
    if (file.kind !== "file" || this.#options.hasLinks === false) throw systemError("EPERM", "link", from);
    this.#set(location, file, []);
  }

  async rename(from: string, to: string): Promise<void> {
    const source = this.#locate(from, "rename");
    const target = this.#locate(to, "rename");
    const node = this.#need(from, "rename");
    const replaced = target.folder.entries.get(target.name);
    if (replaced === node) return;
    if (to.startsWith(`${from}/`)) throw systemError("EINVAL", "rename", from);
    if (from.startsWith(`${to}/`)) throw systemError("ENOTEMPTY", "rename", from);
    if (replaced !== undefined) refuseToReplace(node, replaced, from);
    if (replaced?.kind === "folder") replaced.isRemoved = true;
    source.folder.entries.delete(source.name);
    const earlier = this.#nameChanges.findLast(
      (it) => it.node === node && it.name === source.name && it.folder === source.folder,
    );
    this.#set(target, node, [...(earlier?.from ?? []), source]);
  }

  async unlink(path: string): Promise<void> {
    const node = this.#need(path, "unlink");
    if (node.kind === "folder") throw systemError("EISDIR", "unlink", path);
    this.#remove(this.#locate(path, "unlink"));
  }

  async setGroup(path: string, _gid: number): Promise<void> {
    this.#needFolder(path, "chown");
  }

  async makeFolder(path: string, _mode: number): Promise<void> {
    const location = this.#locate(path, "mkdir");
    if (location.folder.entries.has(location.name)) throw systemError("EEXIST", "mkdir", path);
    this.#set(location, new ModelFolder(path), []);
  }

  async removeFolder(path: string): Promise<void> {
    const folder = this.#needFolder(path, "rmdir");
    if (folder.entries.size > 0) throw systemError("ENOTEMPTY", "rmdir", path);
    this.#remove(this.#locate(path, "rmdir"));
  }

  async removeTree(path: string): Promise<void> {
    const kind = await this.kindOf(path);
    if (kind === undefined && this.#whyMissing(path) === "ENOENT") return;
    if (kind !== "folder") return this.unlink(path);
    for (const name of await this.list(path)) await this.removeTree(join(path, name));
    await this.removeFolder(path);
  }

  /** `later`: numbers of changes made after this sync began, which it does not cover. */
  async syncFolder(path: string, later?: ReadonlySet<number>): Promise<void> {
    const folder = this.#needFolder(path, "open");
    this.#version++;
    const done = this.#nameChanges.filter((it) => it.folder === folder && later?.has(it.number) !== true);
    this.#nameChanges = this.#nameChanges.filter((it) => !done.includes(it));
    for (const change of done) {
      applyTo((it) => it.syncedEntries, change);
      this.#nameChanges = this.#nameChanges.flatMap((it) => afterRename(it, change));
    }
  }

  async openFolder(path: string): Promise<DiskFolder> {
    const folder = this.#needFolder(path, "open");
    // The same in every order of steps, unless a removed folder is still open.
    let descriptor = String(folder.number);
    while ((this.#open.get(descriptor)?.folder ?? folder) !== folder) descriptor = `${descriptor}0`;
    const open = this.#open.get(descriptor) ?? { folder, times: 0 };
    this.#open.set(descriptor, open);
    open.times++;
    const at = (name: string) => `${DESCRIPTORS}/${descriptor}/${name}`;
    return {
      at,
      identity: async () => descriptor,
      sync: () => this.syncFolder(at("")),
      close: () => {
        if (--open.times === 0) this.#open.delete(descriptor);
      },
    };
  }

  #openFile(file: ModelFile): DiskFile {
    let position = 0;
    return {
      write: async (text) => {
        this.#write(file, file.text.slice(0, position) + text + file.text.slice(position + text.length));
        position += text.length;
      },
      sync: async () => {
        this.#version++;
        file.syncedText = file.text;
        this.#unsyncedFiles.delete(file);
      },
      close: async () => {},
    };
  }

  #write(file: ModelFile, text: string): void {
    this.#version++;
    file.text = text;
    this.#unsyncedFiles.add(file);
  }

  #set(location: Location, node: Node, from: readonly Location[]): void {
    location.folder.entries.set(location.name, node);
    this.#change({ ...location, node, from });
  }

  #remove(location: Location): void {
    const node = location.folder.entries.get(location.name);
    if (node?.kind === "folder") node.isRemoved = true;
    location.folder.entries.delete(location.name);
    this.#change({ ...location, node: undefined, from: [] });
  }

  #change(change: Omit<NameChange, "number">): void {
    this.#version++;
    this.#lastNumber++;
    this.#nameChanges.push({ ...change, number: this.#lastNumber });
  }

  /** The folder that a path starts from, the root or an open one, and the names from there. */
  #start(path: string): { readonly start: Node | undefined; readonly names: readonly string[] } {
    const names = segmentsOf(path);
    if (!path.startsWith(DESCRIPTORS)) return { start: this.#root, names };
    return { start: this.#open.get(names[3] ?? "")?.folder, names: names.slice(4) };
  }

  #find(path: string): Node | undefined {
    let { start: node, names } = this.#start(path);
    for (const name of names) {
      if (name === ".") continue;
      if (node?.kind !== "folder") return undefined;
      node = node.entries.get(name);
    }
    return node;
  }

  #need(path: string, call: string): Node {
    const node = this.#find(path);
    if (node === undefined) throw systemError(this.#whyMissing(path), call, path);
    return node;
  }

  #needFolder(path: string, call: string): ModelFolder {
    const node = this.#need(path, call);
    if (node.kind !== "folder") throw systemError("ENOTDIR", call, path);
    return node;
  }

  #locate(path: string, call: string): Location {
    const end = path.lastIndexOf("/");
    const folder = this.#find(path.slice(0, end));
    if (folder?.kind !== "folder" || folder.isRemoved) throw systemError(this.#whyMissing(path), call, path);
    return { folder, name: path.slice(end + 1) };
  }

  /** `ENOTDIR` if a parent is a file. */
  #whyMissing(path: string): "ENOENT" | "ENOTDIR" {
    let { start: node, names } = this.#start(path);
    for (const name of names) {
      if (node?.kind !== "folder") return node?.kind === "file" ? "ENOTDIR" : "ENOENT";
      node = node.entries.get(name);
    }
    return "ENOENT";
  }
}

function addEntries(
  { number, entries, syncedEntries }: ModelFolder,
  nodes: Set<Node>,
  facts: number[],
): void {
  for (const [name, child] of entries) {
    facts.push(pack(1, number, name, child.number));
    nodes.add(child);
  }
  for (const [name, child] of syncedEntries) {
    facts.push(pack(2, number, name, child.number));
    nodes.add(child);
  }
}

/** Instead of the number of a node. */
const NOTHING = numberOf("");

/** A fact about a disk as one number, with less than 65,536 different texts. */
function pack(kind: number, first: number, text: string, last: number): number {
  return ((kind * 65_536 + first) * 65_536 + numberOf(text)) * 65_536 + last;
}

function refuseToReplace(node: Node, replaced: Node, path: string): void {
  if (node.kind !== "folder" && replaced.kind === "folder") throw systemError("EISDIR", "rename", path);
  if (node.kind === "folder" && replaced.kind !== "folder") throw systemError("ENOTDIR", "rename", path);
  const isFull = replaced.kind === "folder" && replaced.entries.size > 0;
  if (isFull) throw systemError("ENOTEMPTY", "rename", path);
}

function isBelow(above: ModelFolder, folder: ModelFolder, entriesOf: Entries): boolean {
  if (above === folder) return true;
  const below = entriesOf(above).values();
  return below.some((child) => child.kind === "folder" && isBelow(child, folder, entriesOf));
}

function applyTo(entriesOf: Entries, { folder, name, node, from }: NameChange): void {
  for (const location of from) {
    if (entriesOf(location.folder).get(location.name) === node)
      entriesOf(location.folder).delete(location.name);
  }
  if (node === undefined) entriesOf(folder).delete(name);
  else entriesOf(folder).set(name, node);
}

/** The rest of a change after a rename of its node became durable: earlier names of the node are gone. */
function afterRename(change: NameChange, { node, from }: NameChange): NameChange[] {
  if (from.length === 0 || change.node !== node) return [change];
  const isOver = from.some((location) => location.folder === change.folder && location.name === change.name);
  return isOver ? [] : [{ ...change, from: change.from.filter((location) => !from.includes(location)) }];
}

function copyOf(
  node: Node,
  entriesOf: Entries,
  survivors: ReadonlySet<Change>,
  copies: Map<Node, Node>,
): Node {
  const known = copies.get(node);
  if (known !== undefined) return known;
  if (node.kind === "link") return node;
  if (node.kind === "file") {
    const copy = new ModelFile(node.origin, node.number);
    copy.text = copy.syncedText = survivors.has(node) ? node.text : node.syncedText;
    copies.set(node, copy);
    return copy;
  }
  const copy = new ModelFolder(node.origin, node.number);
  copies.set(node, copy);
  for (const [name, child] of entriesOf(node)) {
    copy.entries.set(name, copyOf(child, entriesOf, survivors, copies));
  }
  copy.syncedEntries = new Map(copy.entries);
  return copy;
}

function isSynced(node: Node): boolean {
  if (node.kind === "file") return node.text === node.syncedText;
  if (node.kind === "link") return true;
  if (node.entries.size !== node.syncedEntries.size) return false;
  return node.entries
    .entries()
    .every(([name, child]) => node.syncedEntries.get(name) === child && isSynced(child));
}

/** Where open folders are, as on Linux. */
const DESCRIPTORS = "/proc/self/fd";

const segments = new Map<string, readonly string[]>();

function segmentsOf(path: string): readonly string[] {
  const known = segments.get(path);
  if (known !== undefined) return known;
  const split = path.split("/").filter((it) => it !== "");
  segments.set(path, split);
  return split;
}

function systemError(code: string, syscall: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${syscall} '${path}'`), { code, syscall, path });
}
