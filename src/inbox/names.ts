/** Names for a transfer's files and folders: safe on every file system, recognisable, and never two the same. */
import { setImmediate } from "node:timers/promises";
import { foldName, markName, markOf, portableName } from "./portable.ts";

interface NamedFile {
  readonly id: string;
  readonly name: string;
}

/**
 * A name for each file, by id; none begins with a dot or a dash. Names that can be used as they are stay so; where several would
 * become one, or one of the reserved, each carries a mark of its original. The order of the list does not matter. Ids
 * must differ.
 */
export function safeNames(files: readonly NamedFile[], reserved: readonly string[]): Map<string, string> {
  const naming = nameInParts(files, reserved);
  for (let part = naming.next(); ; part = naming.next()) if (part.done) return part.value;
}

/** The same without keeping everything else waiting, however many there are. */
export async function safeNamesInParts(
  files: readonly NamedFile[],
  reserved: readonly string[],
): Promise<Map<string, string>> {
  const naming = nameInParts(files, reserved);
  for (let part = naming.next(); ; part = naming.next()) {
    if (part.done) return part.value;
    await setImmediate();
  }
}

const PART = 1_000;

function* nameInParts(
  files: readonly NamedFile[],
  reserved: readonly string[],
): Generator<void, Map<string, string>, void> {
  const claims = new Claims(reserved);
  const names: Naming[] = [];
  for (const file of files) {
    const naming = new Naming(file);
    claims.settle(naming);
    names.push(naming);
    if (names.length % PART === 0) yield;
  }
  return new Map(
    names.toSorted(byFile).map((naming) => [naming.file.id, naming.name ?? claims.number(naming)]),
  );
}

/** One segment of a path: never empty, otherwise kept or marked as the name of a file is. */
export function safeSegment(text: string): string {
  if (text === "") return "_";
  const portable = portableName(text);
  return portable.kept ? portable.text : markName(portable.text, markOf([text], MARKS[0].digits));
}

/** What is tried after the plain name, in turn. */
const MARKS = [
  { digits: 8, withId: false },
  { digits: 16, withId: true },
  { digits: 40, withId: true },
] as const;

/** One file on its way to a name: each candidate is given up for the next when another file claims it. */
class Naming {
  readonly file: NamedFile;
  /** `undefined` once all candidates were given up. */
  name: string | undefined;
  readonly #portable: string;
  #marksTried = 0;

  constructor(file: NamedFile) {
    this.file = file;
    const { text, kept } = portableName(file.name);
    this.#portable = text;
    if (kept) this.name = text;
    else this.advance();
  }

  advance(): this {
    const { name, id } = this.file;
    const mark = MARKS[this.#marksTried];
    this.#marksTried += 1;
    this.name = mark && this.#marked(markOf(mark.withId ? [name, id] : [name], mark.digits));
    return this;
  }

  numbered(number: number): string {
    const { name, id } = this.file;
    return this.#marked(`${markOf([name, id], 8)}-${number}`);
  }

  #marked(mark: string): string {
    return markName(this.#portable, mark);
  }
}

/**
 * Who has ever tried which name, compared as the strictest file system would. A claim is never withdrawn, also not
 * when its file moves on to the next candidate: so each file ends at its first candidate that no other one ever
 * tried, whichever file is looked at first, and literal names that foresee the marks of others change nothing.
 */
class Claims {
  /** A single claimant is the one that holds the name now; what several have claimed, nobody holds. */
  readonly #claimants = new Map<string, Naming | "several">();

  constructor(reserved: readonly string[]) {
    for (const name of reserved) this.#claimants.set(foldName(name), "several");
  }

  settle(naming: Naming): void {
    const moving = [naming];
    for (let current = moving.pop(); current !== undefined; current = moving.pop()) {
      if (current.name === undefined) continue;
      const key = foldName(current.name);
      const other = this.#claimants.get(key);
      if (other === undefined) {
        this.#claimants.set(key, current);
        continue;
      }
      this.#claimants.set(key, "several");
      moving.push(current.advance());
      if (other !== "several") moving.push(other.advance());
    }
  }

  /** A name that nobody claims, for a file that has given up all of its own: there are more numbers than claims. */
  number(naming: Naming): string {
    let number = 1;
    while (this.#claimants.has(foldName(naming.numbered(number)))) number += 1;
    const name = naming.numbered(number);
    this.#claimants.set(foldName(name), "several");
    return name;
  }
}

function byFile(one: Naming, other: Naming): number {
  return compare(one.file.name, other.file.name) || compare(one.file.id, other.file.id);
}

/** By code units: the same on every machine. */
function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
