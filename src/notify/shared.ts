/**
 * The state of one way, as this process knows it. Changes are applied at once, and saved soon. If another process has
 * saved meanwhile, the unsaved changes are applied again, to the newer state.
 */
import { Coalesced } from "../base/concurrency.ts";
import type { Memory } from "./memory.ts";
import type { WayState } from "./state.ts";

/** Must depend on nothing but the state, and may be applied more than once. */
type Change = (state: WayState) => void;

/** Changes that are kept while nothing can be saved. Further changes are applied, but may be lost. */
const MAX_UNSAVED = 50_000;
/** A failed try means that another process has saved in between. */
const MAX_TRIES = 1_000;

export interface SharedOptions {
  readonly memory: Memory;
  /** Other processes use the memory too. */
  readonly isShared: boolean;
  readonly saveAfterMs: number;
  makeState(snapshot?: ReturnType<WayState["snapshot"]>): WayState;
  /** The state has changed. */
  onChanged(): void;
}

export class Shared {
  readonly #options: SharedOptions;
  readonly #saving: Coalesced;
  #state: WayState;
  #savedRevision: number;
  readonly #unsaved: Change[] = [];
  /** How many of them are in the file that was written last. */
  #written = 0;

  constructor(options: SharedOptions) {
    this.#options = options;
    this.#saving = new Coalesced(() => this.#save(), options.saveAfterMs);
    this.#state = options.makeState();
    this.#savedRevision = this.#state.revision;
  }

  /** Of this process. */
  get token(): string {
    return this.#options.memory.token;
  }

  get state(): WayState {
    return this.#state;
  }

  change(change: Change): void {
    const { isShared, onChanged } = this.#options;
    const before = this.#state.revision;
    change(this.#state);
    const isChanged = this.#state.revision !== before;
    if (isChanged) onChanged();
    // In the state that another process has saved since, the change may have an effect.
    if (!isChanged && !isShared) return;
    if (this.#unsaved.length < MAX_UNSAVED) this.#unsaved.push(change);
    this.#saving.schedule();
  }

  /** Resolves when all changes so far are saved, or could not be. */
  save(): Promise<void> {
    return this.#saving.run();
  }

  /**
   * Applies and saves a change, and returns its result for the saved state. A change that cannot be saved stays in
   * this process: in a later state, it could have another result.
   */
  async run<Result>(change: (state: WayState) => Result): Promise<Result> {
    let result = change(this.#state);
    const apply = (state: WayState) => {
      result = change(state);
    };
    this.#unsaved.push(apply);
    await this.save();
    const at = this.#unsaved.indexOf(apply);
    if (at >= 0) this.#unsaved.splice(at, 1);
    if (at >= 0 && at < this.#written) this.#written--;
    return result;
  }

  /** A failure is not reported: the next save may succeed, and a lost state leads to repeated messages. */
  async #save(): Promise<void> {
    try {
      for (let tries = 0; tries < MAX_TRIES && !(await this.#trySave()); tries++);
    } catch {
      // See above.
    }
  }

  /** False if another process was faster. */
  async #trySave(): Promise<boolean> {
    const { memory, makeState, onChanged } = this.#options;
    const found = await memory.readNewer();
    if (found !== undefined) {
      if (found.hasOurs) this.#unsaved.splice(0, this.#written);
      this.#written = 0;
      this.#state = makeState(found.state);
      this.#savedRevision = this.#state.revision;
      for (const change of this.#unsaved) change(this.#state);
      onChanged();
    }
    const { revision } = this.#state;
    this.#written = this.#unsaved.length;
    if (revision !== this.#savedRevision && !(await memory.write(this.#state.snapshot()))) return false;
    this.#savedRevision = revision;
    this.#unsaved.splice(0, this.#written);
    this.#written = 0;
    return true;
  }
}
