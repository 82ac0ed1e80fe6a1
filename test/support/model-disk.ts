/**
 * Folders of files in memory that behave like a disk, and lose unsynced changes in a power cut.
 *
 * Assumptions about real disks: a file's text is durable after the file is synced, a name after its folder is synced. A
 * rename is one change, durable after the target folder is synced; it never leaves both names or neither. Every change that
 * is not durable may survive a power cut or not, independently of the others. Folders are made before a test begins.
 */
import { hash } from "node:crypto";
import { dirname } from "node:path";
import type { Disk, DiskFile, EntryKind } from "../../src/base/disk.ts";

class ModelFile {
  /** The path of its creation, which identifies it. */
  readonly origin: string;
  text = "";
  syncedText = "";

  constructor(origin: string) {
    this.origin = origin;
  }
}

/** A name that was added, moved or removed. */
interface NameChange {
  /** Counts all changes of the disk. */
  readonly number: number;
  readonly path: string;
  /** Missing for a removed name. */
  readonly file: ModelFile | undefined;
  /** Earlier names of a file that was renamed. All but the first were never durable. */
  readonly from: readonly string[];
}

/** A change that a power cut may undo: of a name, or of a file's text. */
export type Change = NameChange | ModelFile;

type Files = Map<string, ModelFile>;

export class ModelDisk implements Disk {
  readonly #folders: Set<string>;
  readonly #files: Files;
  /** The names that survive a power cut. */
  readonly #synced: Files;
  /** In order. */
  #nameChanges: NameChange[] = [];
  #lastNumber = 0;
  #version = 0;
  #digest: { readonly version: number; readonly text: string } | undefined;
  readonly #unsyncedFiles = new Set<ModelFile>();

  constructor(folders: Iterable<string> = [], files: Files = new Map()) {
    this.#folders = new Set(folders);
    this.#files = files;
    this.#synced = new Map(files);
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
    const left = new Map(this.#synced);
    for (const change of this.#nameChanges) if (survivors.has(change)) applyTo(left, change);
    const copies = new Map<ModelFile, ModelFile>();
    for (const [path, file] of left) {
      const copy = copies.get(file) ?? new ModelFile(file.origin);
      copy.text = copy.syncedText = survivors.has(file) ? file.text : file.syncedText;
      copies.set(file, copy);
      left.set(path, copy);
    }
    return new ModelDisk(this.#folders, left);
  }

  /** The same disk after every process has stopped: nothing is lost. */
  copy(): ModelDisk {
    return this.powerCut(new Set(this.unsynced()));
  }

  /** Equal for disks that behave alike from now on, also after a power cut. */
  digest(): string {
    if (this.#digest?.version === this.#version) return this.#digest.text;
    const facts = [
      ...[...this.#files].map(([path, file]) => ["name", path, file.origin]),
      ...[...this.#synced].map(([path, file]) => ["synced name", path, file.origin]),
      ...this.#nameChanges.map(({ path, file, from }) => ["change", path, file?.origin ?? "", ...from]),
      ...[...this.#files.values(), ...this.#synced.values()].map((file) => [
        "text",
        file.origin,
        file.text,
        file.syncedText,
      ]),
    ];
    const lines = facts.map((fact) => fact.join("\0")).sort();
    const text = hash("sha1", lines.join("\n"), "base64");
    this.#digest = { version: this.#version, text };
    return text;
  }

  textOf(path: string): string | undefined {
    return this.#files.get(path)?.text;
  }

  /** The texts of all files in a folder, by name. */
  textsIn(folder: string): Map<string, string> {
    const files = [...this.#files].filter(([path]) => dirname(path) === folder);
    return new Map(files.map(([path, { text }]) => [path.slice(folder.length + 1), text]));
  }

  async create(path: string, _mode: number): Promise<DiskFile> {
    this.#demandFree(path, "open");
    const file = new ModelFile(path);
    this.#change({ path, file, from: [] });
    return this.#open(file);
  }

  async truncate(path: string): Promise<DiskFile> {
    const file = this.#need(path, "open");
    this.#write(file, "");
    return this.#open(file);
  }

  async read(path: string): Promise<string> {
    return this.#need(path, "open").text;
  }

  async list(folder: string): Promise<string[]> {
    return [...this.textsIn(folder).keys()].sort();
  }

  async kindOf(path: string): Promise<EntryKind | undefined> {
    if (this.#folders.has(path)) return "folder";
    return this.#files.has(path) ? "file" : undefined;
  }

  async link(from: string, to: string): Promise<void> {
    const file = this.#need(from, "link");
    this.#demandFree(to, "link");
    this.#change({ path: to, file, from: [] });
  }

  async rename(from: string, to: string): Promise<void> {
    const file = this.#need(from, "rename");
    if (this.#files.get(to) === file) return;
    const earlier = this.#nameChanges.findLast((it) => it.file === file && it.path === from);
    this.#change({ path: to, file, from: [...(earlier?.from ?? []), from] });
  }

  async unlink(path: string): Promise<void> {
    this.#need(path, "unlink");
    this.#change({ path, file: undefined, from: [] });
  }

  async makeFolder(path: string, _mode: number): Promise<void> {
    this.#folders.add(path);
  }

  /** `later`: numbers of changes made after this sync began, which it does not cover. */
  async syncFolder(folder: string, later?: ReadonlySet<number>): Promise<void> {
    this.#version++;
    const isDone = ({ path, number }: NameChange) => dirname(path) === folder && later?.has(number) !== true;
    const done = this.#nameChanges.filter(isDone);
    this.#nameChanges = this.#nameChanges.filter((it) => !isDone(it));
    for (const change of done) {
      applyTo(this.#synced, change);
      this.#nameChanges = this.#nameChanges.flatMap((it) => afterRename(it, change));
    }
  }

  readonly modifiedMs = notModelled;
  readonly setGroup = notModelled;
  readonly removeFolder = notModelled;
  readonly removeTree = notModelled;
  readonly openFolder = notModelled;

  #open(file: ModelFile): DiskFile {
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

  #change(change: Omit<NameChange, "number">): void {
    const numbered = { ...change, number: ++this.#lastNumber };
    applyTo(this.#files, numbered);
    this.#nameChanges.push(numbered);
    this.#version++;
  }

  #need(path: string, call: string): ModelFile {
    const file = this.#files.get(path);
    if (file === undefined) throw systemError("ENOENT", call, path);
    return file;
  }

  #demandFree(path: string, call: string): void {
    if (!this.#folders.has(dirname(path))) throw systemError("ENOENT", call, path);
    if (this.#files.has(path)) throw systemError("EEXIST", call, path);
  }
}

/** The protocols that are explored on the model do without it. */
export async function notModelled(): Promise<never> {
  throw new Error("not part of the model");
}

function applyTo(files: Files, { path, file, from }: NameChange): void {
  for (const earlier of from) if (files.get(earlier) === file) files.delete(earlier);
  if (file === undefined) files.delete(path);
  else files.set(path, file);
}

/** The rest of a change after a rename of its file became durable: earlier names of the file are gone. */
function afterRename(change: NameChange, { file, from }: NameChange): NameChange[] {
  if (from.length === 0 || change.file !== file) return [change];
  return from.includes(change.path)
    ? []
    : [{ ...change, from: change.from.filter((path) => !from.includes(path)) }];
}

function systemError(code: string, syscall: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${syscall} '${path}'`), { code, syscall, path });
}
