/** Knows from the disk whether a world in peace has come to rest. */
import type { TransferRecord } from "../../../src/model/record.ts";
import type { World } from "../world.ts";
import { parseTorn } from "./paths.ts";

/** When an attempt or a hand-off is repeated. */
const DUE = /"(?:until|nextAt)":"([^"]+)"/g;

export class Rest {
  readonly #world: World;
  readonly #limitMs: number;
  readonly #shortMs: number;
  #quietMs = 0;
  /** For how long nothing has changed of what is left to do, and none of it had a time. */
  #stillMs = 0;
  #left = "";

  /** `limitMs`: longer than the pauses of all that works regularly. `shortMs`: enough if there is nothing to clean up. */
  constructor(world: World, limitMs: number, shortMs: number) {
    this.#world = world;
    this.#limitMs = limitMs;
    this.#shortMs = shortMs;
  }

  get isQuiet(): boolean {
    return this.#quietMs > 0;
  }

  /** Nothing was left to do for longer than regular work takes. */
  get isLong(): boolean {
    return this.#quietMs >= this.#limitMs;
  }

  /** If all is as it should be. What is left to do waits for a person, or for a time that is not on the disk. */
  get mayBeOver(): boolean {
    const isStill = this.#stillMs > 0 && this.#stillMs % this.#limitMs === 0;
    return this.#quietMs >= this.#shortMs || isStill;
  }

  disturb(): void {
    this.#quietMs = 0;
  }

  /** `passedMs`: since the last look. */
  look(passedMs: number): void {
    const { daemon, schedule } = this.#world;
    const isFrozen = (daemon?.process.frozenUntilMs ?? 0) > schedule.nowMs;
    this.#quietMs = !isFrozen && this.#isNothingLeft() ? this.#quietMs + passedMs : 0;
    const before = this.#left;
    this.#left = this.#describeLeft();
    const isStill = !isFrozen && this.#left === before && !this.#isDue();
    this.#stillMs = isStill ? this.#stillMs + passedMs : 0;
  }

  /** Nothing on the disk waits for a time. */
  #isNothingLeft(): boolean {
    const { disk, work, site } = this.#world;
    const notes = disk.names(`${work}/notes`).map((name) => disk.text(`${work}/notes/${name}`) ?? "");
    // A person sees it, although it is still asked for from time to time.
    const isUnsupported = (text: string) => text.includes('"NOT_SUPPORTED"');
    const isOpen = notes.some(
      (text) => (text.includes('"until":"') || !text.includes('"waiting"')) && !isUnsupported(text),
    );
    const hasSteps = disk.names(`${work}/outbox`).some((name) => name.endsWith(".json"));
    // Beside other processes, temporary files stay for an hour.
    const temporary = site.isShared ? [] : ["new"];
    const folders = ["staging", ...temporary].flatMap((name) => disk.names(`${work}/${name}`));
    const orders = disk.names(`${work}/orders`).filter((name) => !name.endsWith(".over"));
    return (
      !isOpen && !hasSteps && folders.every(isProbe) && orders.every((name) => this.#isReleased(name, notes))
    );
  }

  /** An open transfer is released: the order stays until its round ends. */
  #isReleased(name: string, notes: readonly string[]): boolean {
    const order = this.#world.orderIn(name);
    return notes.some((text) => {
      const { trackingId, mailbox, ordered = 0 } = parseTorn(text) as Partial<TransferRecord>;
      const isIncluded = trackingId === order.trackingId && ordered >= Number.parseInt(name, 10);
      return isIncluded && order.action === "release" && mailbox === order.mailbox;
    });
  }

  #describeLeft(): string {
    const { disk, work } = this.#world;
    const files = ["notes", "outbox", "orders"].flatMap((folder) =>
      disk.names(`${work}/${folder}`).map((name) => `${name} ${disk.text(`${work}/${folder}/${name}`)}`),
    );
    const names = ["staging", "new"].flatMap((folder) => disk.names(`${work}/${folder}`));
    return [...files, ...names.filter((name) => !isProbe(name))].join("\n");
  }

  /** Something that is left has a time that is still to come. */
  #isDue(): boolean {
    return [...this.#left.matchAll(DUE)].some(([, at = ""]) => Date.parse(at) > this.#world.schedule.nowMs);
  }
}

function isProbe(name: string): boolean {
  return name.startsWith(".inlet-probe-");
}
